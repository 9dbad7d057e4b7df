-- What was counted before costs had prices: its cost is known as far as a runtime told it.
UPDATE ledger SET unpriced = input + output + cache_read + cache_creation WHERE cost_known = 0;
UPDATE session_totals SET unpriced = input + output + cache_read + cache_creation WHERE cost_known = 0;
UPDATE usage_sums SET unpriced = coalesce((SELECT sum(l.unpriced) FROM ledger l
    WHERE l.namespace = usage_sums.namespace AND l.team = usage_sums.team AND l.person = usage_sums.person), 0);
UPDATE items SET doc = json_set(doc, '$.Usage.UnpricedTokens', (SELECT sum(l.unpriced) FROM ledger l WHERE l.item = items.id))
    WHERE id IN (SELECT item FROM ledger WHERE unpriced > 0);

-- The latest entries of a team, and those few whose cost nobody knows.
CREATE INDEX ledger_team ON ledger (namespace, team);
CREATE INDEX ledger_unpriced ON ledger (namespace, team, item, session, model) WHERE unpriced <> 0;

-- 1: nothing but a budget of the team as a whole keeps the item from being offered.
ALTER TABLE items ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
CREATE INDEX items_held ON items (namespace, team, place, priority, rank, id) WHERE held = 1;
-- Whose budget it was is not known of what was held so far, so each of these counts once.
UPDATE items SET held = 1 WHERE ready = 1 AND doc ->> '$.Hold.Reason' = 'BudgetExhausted';

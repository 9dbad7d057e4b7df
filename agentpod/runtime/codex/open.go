package codex

// This file gets the app-server to the point where a turn runs: it says who is there, reads what the user configured, signs in, and opens
// the thread.

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// initialize says who is there.
func (t *talk) initialize(ctx context.Context) error {
	t.mark = "bullpen-" + strings.ToLower(rand.Text())
	t.models = map[string]string{}
	params := map[string]any{
		"clientInfo":   map[string]string{"name": "bullpen", "title": "Bullpen", "version": cmp.Or(t.codex.Version, "unknown")},
		"capabilities": map[string]any{"experimentalApi": false, "requestAttestation": false, "optOutNotificationMethods": muted},
	}
	if err := t.call(ctx, "initialize", params, nil); err != nil {
		return err
	}
	return t.server.notify("initialized")
}

// settings are the configuration as Codex puts it together.
type settings struct {
	Config struct {
		Provider     string                    `json:"model_provider"`
		Providers    map[string]*modelProvider `json:"model_providers"`
		Instructions string                    `json:"developer_instructions"`
	} `json:"config"`
	// Origins has where values come from that are no defaults, by the path of each.
	Origins map[string]json.RawMessage `json:"origins"`
}

// says whether the user's own configuration says something about one of these.
func (s settings) says(paths ...string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { return given(s.Origins[path]) })
}

// saysTrust says whether the user's own configuration says which folders are trusted.
func (s settings) saysTrust() bool {
	for path, origin := range s.Origins {
		if strings.HasPrefix(path, "projects.") && strings.HasSuffix(path, ".trust_level") && given(origin) {
			return true
		}
	}
	return false
}

// provider is the model's provider, nil where that is OpenAI.
func (s settings) provider() *modelProvider { return s.Config.Providers[s.Config.Provider] }

// modelProvider is who serves the model, where it is not OpenAI.
type modelProvider struct {
	Name string `json:"name"`
	// EnvKey is the variable that has its key.
	EnvKey string `json:"env_key"`
}

// given says whether a member is there and has a value.
func given(member json.RawMessage) bool { return len(member) > 0 && string(member) != "null" }

// readConfig reads the configuration for the folder of the round.
func (t *talk) readConfig(ctx context.Context) error {
	err := t.call(ctx, "config/read", map[string]any{"includeLayers": false, "cwd": t.round.Workdir}, &t.config)
	var refused *rpcError
	if errors.As(err, &refused) && refused.Code == unknownMethod {
		return nil // what is not known is not set
	}
	return err
}

// keyOf is an API key of the environment, if Codex has to be given one, and the variable that it comes from: CODEX_API_KEY always counts,
// OPENAI_API_KEY where nobody has signed in.
func keyOf(env []string) (key, from string) {
	if key := lookup(env, "CODEX_API_KEY"); key != "" {
		return key, "CODEX_API_KEY"
	}
	if _, err := os.Stat(loginOf(env)); err == nil {
		return "", ""
	}
	if key := lookup(env, "OPENAI_API_KEY"); key != "" {
		return key, "OPENAI_API_KEY"
	}
	return "", ""
}

// loginOf is the file that has the login of whoever signed in.
func loginOf(env []string) string { return filepath.Join(homeOf(env), "auth.json") }

// account is what the runtime reads of who is signed in.
type account struct {
	Account *struct {
		Type string `json:"type"`
	} `json:"account"`
	// Needed says that the model's provider wants OpenAI's login or key.
	Needed bool `json:"requiresOpenaiAuth"`
}

// signIn gives Codex the environment's key: the app-server reads none from there. The key stays in its memory.
func (t *talk) signIn(ctx context.Context) error {
	key, from := keyOf(t.round.Env)
	if key == "" {
		return nil
	}
	var who account
	if err := t.call(ctx, "account/read", map[string]bool{"refreshToken": false}, &who); err != nil || !who.Needed {
		return err
	}
	if err := t.call(ctx, "account/login/start", map[string]string{"type": "apiKey", "apiKey": key}, nil); err != nil {
		return fmt.Errorf("the key in %s is not taken: %w", from, err)
	}
	return nil
}

// credential names what Codex signs in with, for people.
func (t *talk) credential() string {
	if provider := t.config.provider(); provider != nil {
		if provider.EnvKey != "" {
			return "the key in " + provider.EnvKey
		}
		file := filepath.Join(homeOf(t.round.Env), "config.toml")
		return "what the model provider " + t.config.Config.Provider + " is configured with in " + file
	}
	if _, from := keyOf(t.round.Env); from != "" {
		return "the key in " + from
	}
	return "the login in " + loginOf(t.round.Env)
}

// threadParams are the parameters that thread/start and thread/resume have in common.
func (t *talk) threadParams() (map[string]any, error) {
	params := map[string]any{"cwd": t.round.Workdir}
	if t.round.Model != "" {
		params["model"] = t.round.Model
	}
	switch {
	case !t.policy.allow:
		params["approvalPolicy"] = "untrusted" // so that Codex asks about all that it does not know to be harmless
	case !t.config.says("approval_policy"):
		params["approvalPolicy"] = "on-request"
	}
	if !t.config.says("sandbox_mode", "default_permissions") {
		params["sandbox"] = "danger-full-access"
	}
	servers, err := mcpServers(t.round.Person.MCPServers, t.round.Env)
	if err != nil {
		return nil, err
	}
	config := map[string]any{}
	if !t.config.saysTrust() {
		config["projects"] = map[string]any{t.round.Workdir: map[string]string{"trust_level": t.policy.trust()}}
	}
	if len(servers) > 0 {
		config["mcp_servers"] = servers
	}
	// A login shell would make PATH anew, and so would a snapshot of one, and lose what the agent's environment says.
	if !t.config.says("allow_login_shell") {
		config["allow_login_shell"] = false
	}
	if !t.config.says("features.shell_snapshot") {
		config["features"] = map[string]bool{"shell_snapshot": false}
	}
	params["config"] = config
	return params, nil
}

// opened is the answer to thread/start and thread/resume.
type opened struct {
	Thread struct {
		ID string `json:"id"`
	} `json:"thread"`
	Model string `json:"model"`
}

// openThread resumes the round's thread, or starts one.
func (t *talk) openThread(ctx context.Context) error {
	params, err := t.threadParams()
	if err != nil {
		return err
	}
	if id := t.round.SessionID; id != "" {
		resumed, err := t.resume(ctx, id, params)
		if err != nil || resumed {
			return err
		}
		t.sink.Journal("The conversation of the earlier rounds (session " + id + ") is lost. This round started anew, from the journal.")
		delete(params, "threadId")
		delete(params, "excludeTurns")
	}
	t.thread = ""
	t.compose(false)
	params["developerInstructions"] = joined(t.config.Config.Instructions, t.prompt.System)
	var answer opened
	if err := t.call(ctx, "thread/start", params, &answer); err != nil {
		return err
	}
	t.enter(answer)
	return nil
}

// enter takes the thread as the round's.
func (t *talk) enter(answer opened) {
	t.thread, t.model = answer.Thread.ID, cmp.Or(answer.Model, t.round.Model)
	if t.thread != t.round.SessionID {
		t.memory = t.memories.recall(t.thread)
	}
	t.memory.System = digest(t.prompt.System)
	t.memory.save(t.log)
	t.sink.Session(t.thread, t.model)
}

// joined puts the user's own instructions before those of the team.
func joined(own, team string) string {
	if strings.TrimSpace(own) == "" {
		return team
	}
	return strings.TrimSpace(own) + "\n\n" + team
}

const (
	// resumeTries is how often a thread that is there is tried again, resumePause how long apart.
	resumeTries = 3
	resumePause = 500 * time.Millisecond
)

// resume opens an earlier thread. It returns false where the thread is lost: Codex does not have it, or refuses it again and again.
func (t *talk) resume(ctx context.Context, id string, params map[string]any) (bool, error) {
	if t.memory = t.memories.recall(id); t.memory.Spent {
		return false, nil
	}
	t.compose(true)
	t.thread = id // what is told of it while it is being opened is about the round's thread
	params["threadId"], params["excludeTurns"] = id, true
	for try := 1; ; try++ {
		var answer opened
		err := t.call(ctx, "thread/resume", params, &answer)
		if err == nil {
			return true, t.goOn(ctx, answer)
		}
		var refused *rpcError
		if !errors.As(err, &refused) {
			return false, err
		}
		if there := t.kept(id); !there || try == resumeTries {
			t.log.Warn("the thread is lost, another one begins", "thread", id, "kept", there, "error", err)
			return false, nil
		}
		select {
		case <-time.After(resumePause):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// kept says whether Codex's home has the thread: it names the file of a thread after its id. The errors of the app-server do not tell a
// thread that is lost from one that cannot be read just now.
func (t *talk) kept(id string) bool {
	if id != filepath.Base(id) || strings.ContainsAny(id, `*?[\`) {
		return false
	}
	for _, folder := range []string{"sessions/*/*/*", "archived_sessions"} {
		if found, err := filepath.Glob(filepath.Join(homeOf(t.round.Env), folder, "*"+id+"*")); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// goOn enters a thread that was resumed. It keeps the instructions that it began with, so what changed in them since is said again.
func (t *talk) goOn(ctx context.Context, answer opened) error {
	changed := t.memory.changed(digest(t.prompt.System))
	if changed {
		text := "Your instructions have changed. These replace the earlier ones:\n\n" + t.prompt.System
		err := t.call(ctx, "thread/inject_items", map[string]any{"threadId": answer.Thread.ID, "items": []any{map[string]any{
			"type": "message", "role": "developer", "content": []any{map[string]string{"type": "input_text", "text": text}},
		}}}, nil)
		if err != nil {
			return err
		}
	}
	t.enter(answer)
	return nil
}

// startTurn begins a turn.
func (t *talk) startTurn(ctx context.Context, in turnInput) error {
	var input []map[string]any
	for _, text := range in.texts {
		input = append(input, map[string]any{"type": "text", "text": text, "text_elements": []any{}})
	}
	params := map[string]any{"threadId": t.thread, "clientUserMessageId": t.turn.client, "input": input}
	if effort := t.round.Person.Effort; effort != "" {
		params["effort"] = effort
	}
	if t.fellBack {
		params["model"] = t.model
		t.sink.Session(t.thread, t.model)
	}
	var answer struct {
		Turn turnView `json:"turn"`
	}
	if err := t.call(ctx, "turn/start", params, &answer); err != nil {
		return err
	}
	t.turn.id = cmp.Or(answer.Turn.ID, t.turn.id)
	return nil
}

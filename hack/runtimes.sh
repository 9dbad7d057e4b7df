#!/bin/sh
# Installs the runtimes of test/runtimes/package.json with npm, at the versions of its lock file, into a folder. What is there already
# and is what the lock file says stays.
set -eu
into=$1
from=$(dirname "$0")/../test/runtimes

# A lock file that names no registry has npm ask the one that the machine is configured for.
if grep -q '"resolved"' "$from/package-lock.json"; then
	echo "runtimes: $from/package-lock.json names a registry; make it again with npm install --package-lock-only --omit-lockfile-registry-resolved" >&2
	exit 1
fi
works() { "$into/node_modules/.bin/claude" --version && "$into/node_modules/.bin/codex" --version; }

if cmp -s "$from/package-lock.json" "$into/installed.json" && works >/dev/null 2>&1; then
	exit 0
fi
if ! command -v npm >/dev/null; then
	echo "runtimes: npm was not found. Install Node.js 18 or newer, with npm." >&2
	exit 1
fi
mkdir -p "$into"
rm -f "$into/installed.json"
cp "$from/package.json" "$from/package-lock.json" "$into/"
echo "runtimes: installing into $into"
# No package runs scripts but Claude Code's, which puts its program into place.
(cd "$into" && npm ci --no-audit --no-fund --loglevel=error --ignore-scripts && node node_modules/@anthropic-ai/claude-code/install.cjs)
works
cp "$from/package-lock.json" "$into/installed.json"

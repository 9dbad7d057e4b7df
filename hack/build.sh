#!/bin/sh
# Builds a Go program and shows how far it is: build.sh OUT PACKAGE [LDFLAGS]. Compiling Kubernetes' libraries for the first time takes
# minutes, and silence would look like a hang. On a terminal the count runs in place; elsewhere there is a line for each 250 packages.
set -eu
out=$1 package=$2 ldflags=${3:-}
name=$(basename "$out")
status=$(mktemp)
trap 'rm -f "$status"' EXIT
terminal=0
[ -t 1 ] && terminal=1
{
	code=0
	go build -v -ldflags "$ldflags" -o "$out" "$package" 2>&1 || code=$?
	echo "$code" >"$status"
} | awk -v name="$name" -v terminal="$terminal" -v status="$status" '
	# go build -v says the path of each package that it compiles; everything else is an error or a download.
	/^go: downloading / { downloads++; next }
	/^[A-Za-z0-9_.\/~-]+$/ {
		packages++
		if (terminal) { printf "\r\033[K  building %s: %d packages compiled", name, packages; fflush() }
		else if (packages % 250 == 0) { printf "  building %s: %d packages compiled\n", name, packages; fflush() }
		next
	}
	{ if (terminal && packages) printf "\n"; print }
	END {
		if (terminal && packages) printf "\r\033[K"
		getline code <status
		if (packages && code == 0) printf "  built %s (%d packages compiled%s)\n", name, packages, downloads ? ", " downloads " modules downloaded" : ""
	}'
exit "$(cat "$status")"

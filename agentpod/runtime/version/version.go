// Package version compares the versions of the programs that the runtimes run.
package version

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Version is three numbers, the weightiest first.
type Version [3]int

// String is the version as programs write it.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

// Before says whether a version is older than another.
func (v Version) Before(w Version) bool {
	for i := range v {
		if v[i] != w[i] {
			return v[i] < w[i]
		}
	}
	return false
}

// Parse reads three numbers with dots between them; ok is false for anything else.
func Parse(text string) (v Version, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) != len(v) {
		return v, false
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return v, false
		}
		v[i] = n
	}
	return v, true
}

// Said is what the program at path says of itself when it is started with --version and that environment, within the time.
func Said(ctx context.Context, path string, env []string, within time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env, cmd.WaitDelay = env, time.Second
	said, err := cmd.Output()
	return string(said), err
}

// Package ost is the command that programs in an agent's pod speak to the team with: to the agent, over its unix socket, and
// through it to the office. Each command is a message of the agent protocol; docs/ost.md has them all.
package ost

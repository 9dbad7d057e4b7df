package agent

// This file keeps the team config that the office gave, and writes it down for the programs and models of the rounds.

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bullpen-dev/bullpen/agentpod/disk"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// team is the config in use, and the one to use after the round.
type team struct {
	raw    []byte
	config protocol.TeamConfig
	// pending is the config of the last welcome, if it is not in use yet.
	pending []byte
	// pendingID is the id of that welcome.
	pendingID string
	// taken says that the config came from the office in this life.
	taken bool
	// problem says why the last config cannot be used; empty when it can.
	problem string
}

// person gives what the config says about a person; the zero value if nothing.
func person(config protocol.TeamConfig, handle string) protocol.TeamPerson {
	for _, p := range config.People {
		if p.Handle == handle {
			return p
		}
	}
	return protocol.TeamPerson{}
}

// roleOf gives the role of a person; the zero value if none.
func roleOf(config protocol.TeamConfig, handle string) protocol.TeamRole {
	name := person(config, handle).Role
	for _, r := range config.Roles {
		if name != "" && r.Name == name {
			return r
		}
	}
	return protocol.TeamRole{}
}

// needsNoReview says whether a kind of work of a person finishes without anything to review.
func needsNoReview(config protocol.TeamConfig, handle, kind string) bool {
	for _, w := range roleOf(config, handle).Work {
		if w.Kind == kind {
			return w.Review == protocol.ReviewNone
		}
	}
	return false
}

// teamFile and teamPage are where programs find the config, as data and to read.
func (h *home) teamFile() string { return filepath.Join(h.root, "team.json") }
func (h *home) teamPage() string { return filepath.Join(h.root, "TEAM.md") }

// saveTeam writes both; withCLI says that programs have ost.
func (h *home) saveTeam(raw []byte, config protocol.TeamConfig, handle string, withCLI bool) error {
	page := teamPage(config, handle)
	if withCLI {
		page = append(page, cliSection...)
	}
	return errors.Join(disk.Write(h.teamFile(), raw), disk.Write(h.teamPage(), page))
}

// cliSection tells those who read the page of ost.
const cliSection = `
## Speaking to the team

- The command ost asks teammates, arranges your work, records what you made, keeps notes and searches your past: see ost help.
- NOTES.md, beside this page, has your notes of earlier rounds.
`

// loadTeam reads the config of an earlier life. Without one that can be used it returns nothing.
func (h *home) loadTeam() ([]byte, protocol.TeamConfig) {
	raw, err := os.ReadFile(h.teamFile())
	if err != nil {
		return nil, protocol.TeamConfig{}
	}
	config, err := protocol.ParseTeamConfig(raw)
	if err != nil {
		return nil, protocol.TeamConfig{}
	}
	return raw, config
}

// teamPage writes the config for those who read.
func teamPage(config protocol.TeamConfig, handle string) []byte {
	me, role := person(config, handle), roleOf(config, handle)
	var page bytes.Buffer
	write := func(format string, args ...any) { _, _ = fmt.Fprintf(&page, format, args...) }
	write("# %s\n\nYou are %s (%s)", oneLine(config.DisplayName), oneLine(cmp.Or(me.Name, handle)), handle)
	if role.Name != "" {
		write(", %s", oneLine(cmp.Or(role.Title, role.Name)))
	}
	write(".")
	if role.Summary != "" {
		write(" %s", oneLine(role.Summary))
	}
	write("\n")
	if role.Instructions != "" {
		write("\n## Instructions\n\n%s\n", strings.TrimSpace(role.Instructions))
	}
	section(&page, "Kinds of work", role.Work, func(w protocol.TeamWork) string {
		if w.Review == protocol.ReviewNone {
			return w.Kind + ": finishes without a review"
		}
		return w.Kind + ": ends with something to review"
	})
	section(&page, "People", config.People, func(p protocol.TeamPerson) string {
		return p.Handle + unless(p.Name == p.Handle, ", "+p.Name) + unless(p.Role == "", " ("+p.Role+")")
	})
	section(&page, "Humans", config.Humans, func(h protocol.TeamHuman) string {
		line := h.Name
		for _, system := range slices.Sorted(maps.Keys(h.Identities)) {
			line += ", " + system + ": " + h.Identities[system]
		}
		return line
	})
	section(&page, "Repositories", config.Repositories, func(r protocol.TeamRepository) string {
		return r.Name + ": " + r.URL + unless(r.DefaultBranch == "", ", from branch "+r.DefaultBranch)
	})
	return page.Bytes()
}

// section writes a heading and a line for each of a list; nothing for an empty list.
func section[T any](page *bytes.Buffer, heading string, list []T, line func(T) string) {
	if len(list) == 0 {
		return
	}
	page.WriteString("\n## " + heading + "\n\n")
	for _, entry := range list {
		page.WriteString("- " + oneLine(line(entry)) + "\n")
	}
}

func unless(absent bool, text string) string {
	if absent {
		return ""
	}
	return text
}

// oneLine keeps a name from becoming structure of the page.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

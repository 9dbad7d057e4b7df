package main

// This file tests what the flags make of each other.

import (
	"slices"
	"strings"
	"testing"
)

func TestComplete(t *testing.T) {
	tests := map[string]struct {
		edit func(*options)
		// url is what agents dial, wrong a part of the error.
		url, wrong string
	}{
		"the Service's name is dialled":    {edit: func(*options) {}, url: "https://bullpen-office.ops.svc:8443"},
		"another URL":                      {edit: func(o *options) { o.officeURL = "https://127.0.0.1:1234" }, url: "https://127.0.0.1:1234"},
		"without TLS":                      {edit: func(o *options) { o.officeURL = "http://x:1" }, wrong: "--office-url"},
		"a URL with a path":                {edit: func(o *options) { o.officeURL = "https://x:1/path" }, wrong: "--office-url"},
		"no image":                         {edit: func(o *options) { o.agentImage = "" }, wrong: "--agent-image"},
		"an origin":                        {edit: func(o *options) { o.allowedOrigins = []string{"https://board.example.com", "http://localhost:5173"} }, url: "https://bullpen-office.ops.svc:8443"},
		"an origin with a path":            {edit: func(o *options) { o.allowedOrigins = []string{"https://board.example.com/"} }, wrong: "--session-allowed-origins"},
		"any origin":                       {edit: func(o *options) { o.allowedOrigins = []string{"*"} }, wrong: "--session-allowed-origins"},
		"an origin that no browser sends":  {edit: func(o *options) { o.allowedOrigins = []string{"https://Board.example.com"} }, wrong: "--session-allowed-origins"},
		"a log format that does not exist": {edit: func(o *options) { o.logFormat = "xml" }, wrong: "--log-format"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := options{agentImage: "agent:1", officeNamespace: "ops", logFormat: "json"}
			test.edit(&o)
			err := o.complete()
			switch {
			case test.wrong == "" && (err != nil || o.officeURL != test.url):
				t.Errorf("%s, %v", o.officeURL, err)
			case test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)):
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestTheCertificateIsForWhatAgentsDial(t *testing.T) {
	o := options{agentImage: "agent:1", officeNamespace: "ops", logFormat: "json", officeURL: "https://office.example.com:8443"}
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	names := o.officeNames()
	for _, want := range []string{"office.example.com", "bullpen-office.ops.svc", "bullpen-office.ops.svc.cluster.local"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not among %v", want, names)
		}
	}
}

package main

// These tests run the commands about sessions against an office in memory, at --office-url. test/integration/access reaches one through a
// port-forward.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/cmd/kubectl-bullpen/sessions/sessionstest"
	"github.com/bullpen-dev/bullpen/office/feed"
)

// desk is a user at a machine: a cluster, an office, and what commands get and give.
type desk struct {
	t       *testing.T
	office  *sessionstest.Office
	objects []client.Object
	wrap    interceptor.Funcs
	config  rest.Config
	in      string
	out     io.Writer
	// may says what the user may do: "get session".
	may map[string]bool
	// size is that of the terminal.
	size     [2]int
	patience time.Duration
	ctx      context.Context
}

func newDesk(t *testing.T) *desk {
	o := sessionstest.New(t)
	it := item("fix-login", "active", "1/1000100/ab", func(it *api.WorkItem) { it.UID = "item-1" })
	return &desk{
		t: t, office: o, config: rest.Config{Host: "https://api.example.com", BearerToken: "good"}, ctx: t.Context(),
		may: map[string]bool{"get session": true, "create message": true, "create stop": true},
		objects: []client.Object{it, &corev1.ConfigMap{
			ObjectMeta: meta("bullpen", "bullpen-office"), Data: map[string]string{"url": "https://bullpen-office.bullpen.svc:8443", "ca.crt": string(o.CA())},
		}},
	}
}

// run runs a command line.
func (d *desk) run(args ...string) (out, errOut string, code int) {
	d.t.Helper()
	k := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(d.objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			review, ok := o.(*authorizationv1.SelfSubjectAccessReview)
			if !ok {
				return fmt.Errorf("the plugin makes a %T", o)
			}
			a := review.Spec.ResourceAttributes
			review.Status.Allowed = d.may[a.Verb+" "+a.Subresource]
			return nil
		},
		Get: d.wrap.Get,
	}).Build()
	var stdout, stderr bytes.Buffer
	c := &cli{in: strings.NewReader(d.in), out: &stdout, errOut: &stderr, now: func() time.Time { return noon }, zone: time.UTC, patience: d.patience}
	if d.out != nil {
		c.out = d.out
	}
	c.connect = func() (client.Client, string, error) { return k, "shop", nil }
	c.config = func() (*rest.Config, error) { return rest.CopyConfig(&d.config), nil }
	c.terminal = func() (int, int) { return d.size[0], d.size[1] }
	if d.office != nil {
		args = append(args, "--office-url", d.office.URL)
	}
	code = c.run(d.ctx, args)
	return stdout.String(), stderr.String(), code
}

// tell fills the session with a turn of a program.
func (d *desk) tell() {
	o := d.office
	o.Add(feed.SourceLifecycle, feed.FormatLifecycle, feed.TypeMessageReceived, `{"message_id":"m1","turn_id":"t1","body":"Mend it.","author":"grace"}`)
	o.Add(feed.SourceLifecycle, feed.FormatLifecycle, feed.TypeTurnStarted, `{"turn_id":"t1","turn_index":0}`)
	o.Add(feed.SourceCommand, feed.FormatCommand, feed.Stdout, `{"lines":["mended"],  "n":1234567890123456789012}`)
	o.Add(feed.SourceLifecycle, feed.FormatLifecycle, feed.TypeTurnEnded, `{"turn_id":"t1","turn_index":0,"status":"completed","duration_ms":4200}`)
	o.Change(func(o *sessionstest.Office) {
		o.Session.Cost.Total, o.Session.Tokens = 42_000, feed.Tokens{Input: 900, Output: 100, Total: 1000, Model: "m"}
		o.Session.Turn = &feed.Turn{ID: "t1", Status: feed.TurnStatusCompleted}
	})
}

func (d *desk) close() {
	d.office.Add(feed.SourceLifecycle, feed.FormatLifecycle, feed.TypeSessionClosed, `{}`)
	d.office.Change(func(o *sessionstest.Office) { o.Session.Conversation.State = feed.ConversationClosed })
}

func TestLogsShowASession(t *testing.T) {
	for name, test := range map[string]struct {
		line   string
		closed bool
		size   [2]int
		has    []string
		not    []string
	}{
		"as it is":            {line: "logs fix-login", has: []string{"▷ grace", "  Mend it.", "── Turn 1, asked by grace", "mended", "Turn 1 completed after 4.2 s", "The session is open.", "0.42 USD · 1,000 tokens"}},
		"to its end":          {line: "logs fix-login -f", closed: true, has: []string{"mended", "The session was closed.", "The session is closed."}},
		"on a terminal":       {line: "logs fix-login --follow", closed: true, size: [2]int{60, 20}, has: []string{"\x1b[1mTurn 1, asked by grace\x1b[0m", "mended"}},
		"from the middle":     {line: "logs fix-login --since-seq 2", has: []string{"mended", "Turn 1 completed"}, not: []string{"grace", "1 turn"}},
		"in another form":     {line: "logs fix-login --full", has: []string{"mended"}},
		"with its CA at hand": {line: "logs fix-login --office-ca", has: []string{"mended"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.tell()
			if test.closed {
				d.close()
			}
			d.size = test.size
			t.Setenv("NO_COLOR", "")
			args := strings.Fields(test.line)
			if strings.HasSuffix(test.line, "--office-ca") {
				ca := filepath.Join(t.TempDir(), "ca.crt")
				if err := os.WriteFile(ca, d.office.CA(), 0o600); err != nil {
					t.Fatal(err)
				}
				d.objects = d.objects[:1]
				args = append(args, ca)
			}
			out, errOut, code := d.run(args...)
			if code != 0 || errOut != "" {
				t.Fatalf("it exits with %d and says %q", code, errOut)
			}
			for _, want := range test.has {
				if !strings.Contains(out, want) {
					t.Errorf("it has no %q:\n%s", want, out)
				}
			}
			for _, not := range test.not {
				if strings.Contains(out, not) {
					t.Errorf("it has %q:\n%s", not, out)
				}
			}
		})
	}
}

func TestColorsAreNotForEverybody(t *testing.T) {
	d := newDesk(t)
	d.tell()
	d.size = [2]int{60, 20}
	t.Setenv("NO_COLOR", "1")
	if out, _, _ := d.run("logs", "fix-login"); strings.Contains(out, "\x1b[1m") || !strings.Contains(out, "mended") {
		t.Errorf("with NO_COLOR, it prints %q", out)
	}
}

func TestLogsAsJSONAreTheRecordsAsTheyCame(t *testing.T) {
	for _, follow := range []bool{false, true} {
		d := newDesk(t)
		d.tell()
		d.close()
		args := []string{"logs", "fix-login", "--json", "--since-seq=1"}
		if follow {
			args = append(args, "-f")
		}
		out, errOut, code := d.run(args...)
		if code != 0 || errOut != "" {
			t.Fatalf("it exits with %d and says %q", code, errOut)
		}
		var want bytes.Buffer
		d.office.Change(func(o *sessionstest.Office) {
			for _, r := range o.Records[1:] {
				want.Write(append(r, '\n'))
			}
		})
		if out != want.String() {
			t.Errorf("it prints\n%snot\n%s", out, want.String())
		}
	}
}

func TestARecordOfManyLinesIsOneLineOfJSON(t *testing.T) {
	d := newDesk(t)
	d.office.Add(feed.SourceCommand, feed.FormatCommand, feed.Stdout, "{\n  \"lines\": [\"a  b\"],\r\n  \"n\": 1.50\n}")
	out, _, _ := d.run("logs", "fix-login", "--json")
	if strings.Count(out, "\n") != 1 || !strings.Contains(out, `"payload":{"lines":["a  b"],"n":1.50}`) || !json.Valid([]byte(out)) {
		t.Errorf("it prints %q", out)
	}
}

func TestWhatIsNotKeptAnyMoreIsSaid(t *testing.T) {
	for _, args := range [][]string{{"logs", "fix-login"}, {"logs", "fix-login", "-f"}, {"logs", "fix-login", "--json"}, {"logs", "fix-login", "--json", "-f"}} {
		d := newDesk(t)
		d.office.Change(func(o *sessionstest.Office) { o.Earliest = 1001 })
		d.tell()
		d.close()
		out, errOut, code := d.run(args...)
		if code != 0 || !strings.Contains(out+errOut, "The records from 1 to 1") || !strings.Contains(out, "mended") {
			t.Errorf("%v exits with %d and says %q and\n%s", args, code, errOut, out)
		}
	}
}

// A cut stream goes on: nothing is lost, nothing comes twice, and short cuts are not worth a word.
func TestLogsGoOnAfterACut(t *testing.T) {
	d := newDesk(t)
	for i := range 50 {
		d.office.Add(feed.SourceCommand, feed.FormatCommand, feed.Stdout, fmt.Sprintf(`{"lines":["line %d."]}`, i))
	}
	d.close()
	d.office.Change(func(o *sessionstest.Office) {
		o.Stream = func(n int, s *sessionstest.Stream) {
			if n == 3 {
				s.Serve()
				return
			}
			s.Greet()
			s.DeliverSome(3, 10)
			_ = s.NetConn().Close()
		}
	})
	out, errOut, code := d.run("logs", "-f", "fix-login")
	if code != 0 || errOut != "" || d.office.Streams() != 4 {
		t.Fatalf("it exits with %d after %d streams and says %q", code, d.office.Streams(), errOut)
	}
	for i := range 50 {
		if n := strings.Count(out, fmt.Sprintf("line %d.\n", i)); n != 1 {
			t.Errorf("line %d is there %d times", i, n)
		}
	}
}

func TestLogsEndWhenTheUserWants(t *testing.T) {
	d := newDesk(t)
	d.tell()
	ctx, cancel := context.WithCancel(t.Context())
	d.ctx = ctx
	d.office.Change(func(o *sessionstest.Office) {
		o.Stream = func(_ int, s *sessionstest.Stream) {
			s.Greet()
			s.Deliver(10)
			time.AfterFunc(100*time.Millisecond, cancel)
			<-s.Gone
		}
	})
	out, errOut, code := d.run("logs", "-f", "fix-login")
	if code != exitInterrupted || errOut != "" || !strings.Contains(out, "mended") || !strings.Contains(out, "The session is open.") {
		t.Errorf("it exits with %d and says %q and\n%s", code, errOut, out)
	}
}

// fullPipe is an output that nobody reads any more.
type fullPipe struct{}

func (fullPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestLogsEndWhenNobodyReads(t *testing.T) {
	for _, args := range [][]string{{"logs", "fix-login"}, {"logs", "fix-login", "-f"}, {"logs", "fix-login", "-f", "--json"}} {
		d := newDesk(t)
		d.tell()
		d.out = fullPipe{}
		if _, errOut, code := d.run(args...); code != exitError || !strings.Contains(errOut, "broken pipe") {
			t.Errorf("%v exits with %d and says %q", args, code, errOut)
		}
	}
}

func TestSayAndStop(t *testing.T) {
	d := newDesk(t)
	out, errOut, code := d.run("say", "fix-login", "and", "the", "tests,", "please")
	if code != 0 || errOut != "" || !strings.Contains(out, "shop/fix-login") {
		t.Errorf("say exits with %d and says %q, %q", code, out, errOut)
	}
	d.in = "a long\nreview\n"
	if out, errOut, code := d.run("say", "fix-login", "--close", "-o", "json", "-"); code != 0 || !strings.Contains(out, `"turn_id": "t9"`) {
		t.Errorf("say exits with %d and says %q, %q", code, out, errOut)
	}
	if out, errOut, code := d.run("stop", "fix-login"); code != 0 || !strings.Contains(out, "shop/fix-login is being stopped") {
		t.Errorf("stop exits with %d and says %q, %q", code, out, errOut)
	}
	d.office.Change(func(o *sessionstest.Office) {
		want := []sessionstest.Said{{Body: "and the tests, please"}, {Body: "a long\nreview\n", Closes: true}}
		if len(o.Said) != 2 || o.Said[0] != want[0] || o.Said[1] != want[1] || o.Stopped != 1 {
			t.Errorf("the office heard %v and %d stops", o.Said, o.Stopped)
		}
	})
	if _, errOut, code := d.run("say", "fix-login", " "); code != exitError || !strings.Contains(errOut, "there is nothing to say") {
		t.Errorf("nothing exits with %d and says %q", code, errOut)
	}
}

// An item that began in the office is known there by another id than its object's.
func TestAnItemThatBeganInTheOffice(t *testing.T) {
	d := newDesk(t)
	d.tell()
	d.objects[0] = item("fix-login", "active", "", func(it *api.WorkItem) {
		it.UID, it.Annotations = "of-the-object", map[string]string{api.AnnotationItemID: "item-1"}
	})
	if out, errOut, code := d.run("logs", "fix-login"); code != 0 || !strings.Contains(out, "mended") {
		t.Errorf("it exits with %d and says %q", code, errOut)
	}
}

// What an item did can be read when its object is long gone.
func TestAnItemThatIsGone(t *testing.T) {
	d := newDesk(t)
	d.tell()
	d.objects = d.objects[1:]
	if out, errOut, code := d.run("logs", "fix-login"); code != 0 || !strings.Contains(out, "mended") {
		t.Errorf("it exits with %d and says %q", code, errOut)
	}
}

// A new item is known to the office a moment later than to the API server.
func TestAnItemThatIsNew(t *testing.T) {
	d := newDesk(t)
	d.tell()
	d.office.Change(func(o *sessionstest.Office) { o.Item = "not-yet" })
	if out, errOut, code := d.run("logs", "fix-login"); code != exitError || !strings.Contains(errOut, "the office has no session of the work item shop/fix-login") {
		t.Errorf("without patience, it exits with %d and says %q, %q", code, out, errOut)
	}
	d.patience = 10 * time.Second
	known := time.AfterFunc(300*time.Millisecond, func() { d.office.Change(func(o *sessionstest.Office) { o.Item = "item-1" }) })
	defer known.Stop()
	if out, errOut, code := d.run("logs", "fix-login"); code != exitOK || !strings.Contains(out, "mended") {
		t.Errorf("with patience, it exits with %d and says %q, %q", code, out, errOut)
	}
}

func TestWhatGoesWrongIsSaid(t *testing.T) {
	workitems := schema.GroupResource{Group: "bullpen.dev", Resource: "workitems"}
	refuse := func(end string, p sessionstest.Problem) func(*desk) {
		return func(d *desk) { d.office.Change(func(o *sessionstest.Office) { o.Refuse[end] = p }) }
	}
	get := func(fail func(o client.Object) error) func(*desk) {
		return func(d *desk) {
			d.wrap.Get = func(ctx context.Context, k client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if err := fail(o); err != nil {
					return err
				}
				return k.Get(ctx, key, o, opts...)
			}
		}
	}
	for name, test := range map[string]struct {
		edit func(*desk)
		line string
		says []string
	}{
		"there is no such item": {func(d *desk) { d.objects = d.objects[1:] }, "logs nothing", []string{
			"there is no work item nothing in namespace shop", "kubectl --namespace shop get workitems"}},
		"there is no such item, and sessions may not be listed": {func(d *desk) {
			d.objects = d.objects[1:]
			refuse("/sessions", sessionstest.Problem{Status: 403, Detail: "you may not list"})(d)
		}, "logs nothing", []string{"there is no work item nothing in namespace shop"}},
		"one may not read the session": {func(d *desk) {
			delete(d.may, "get session")
			refuse("/item-1", sessionstest.Problem{Status: 404, Detail: "there is no such session, or you may not read it"})(d)
		}, "logs fix-login", []string{"you may not get workitems/session of bullpen.dev in namespace shop", "kind: ClusterRole", "workitems/session"}},
		"one may not even see items": {func(d *desk) {
			get(func(o client.Object) error {
				if _, ok := o.(*api.WorkItem); ok {
					return apierrors.NewForbidden(workitems, "fix-login", errors.New("no role"))
				}
				return nil
			})(d)
			refuse("/sessions", sessionstest.Problem{Status: 403, Detail: "you may not list"})(d)
		}, "logs fix-login", []string{"you may not get workitems/session", "kind: ClusterRole"}},
		"one may not speak": {func(d *desk) {
			delete(d.may, "create message")
			refuse("/messages", sessionstest.Problem{Status: 403, Detail: "you may not create workitems/message"})(d)
		}, "say fix-login hello", []string{"you may not create workitems/message of bullpen.dev in namespace shop", "resources: [workitems/message, workitems/stop]"}},
		"one may not stop": {func(d *desk) {
			delete(d.may, "create stop")
			refuse("/stop", sessionstest.Problem{Status: 403, Detail: "you may not"})(d)
		}, "stop fix-login", []string{"you may not create workitems/stop"}},
		"the session takes no message": {refuse("/messages", sessionstest.Problem{Status: 409, Detail: "the session is closed: make a new work item", Blocked: "closed"}),
			"say fix-login hello", []string{"the session is closed: make a new work item"}},
		"the session API is off": {refuse("", sessionstest.Problem{Status: 503, Detail: "the session API is off: this office cannot ask Kubernetes who may use it"}),
			"logs fix-login", []string{"the session API is off"}},
		"the office does not know one":   {func(d *desk) { d.config.BearerToken = "bad" }, "logs fix-login", []string{"the office does not know you: log in anew"}},
		"the office is away":             {func(d *desk) { d.office.Close() }, "logs fix-login", []string{"reach the office", "connection refused"}},
		"the certificate is another one": {func(d *desk) { d.objects = d.objects[:1] }, "logs fix-login", []string{"reach the office", "certificate"}},
		"as somebody else":               {func(d *desk) { d.config.Impersonate.UserName = "grace" }, "logs fix-login", []string{"leave out --as"}},
		"in all namespaces":              {nil, "logs fix-login -A", []string{"name it with -n instead of -A"}},
		"a place that cannot be":         {nil, "logs fix-login --since-seq -1", []string{"--since-seq is the feed_seq of a record"}},
		"without an item":                {nil, "logs", []string{"accepts 1 arg"}},
		"a CA that is not there":         {nil, "logs fix-login --office-ca /nowhere", []string{"read --office-ca"}},
		"an office without TLS":          {func(d *desk) { d.office.URL = "http://127.0.0.1:1" }, "logs fix-login", []string{"the office is reached by https"}},
		"the manager's namespace is another": {func(d *desk) { d.office, d.objects = nil, d.objects[:1] }, "logs fix-login", []string{
			"there is no ConfigMap bullpen-office in namespace bullpen", "--office-namespace"}},
		"one may not reach the manager": {func(d *desk) {
			d.office = nil
			get(func(o client.Object) error {
				if _, ok := o.(*corev1.ConfigMap); ok {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "bullpen-office", errors.New("no role"))
				}
				return nil
			})(d)
		}, "logs fix-login", []string{"bullpen-office", "kind: Role", "pods/portforward"}},
		"there is no manager": {func(d *desk) { d.office = nil }, "logs fix-login", []string{"there is no Service bullpen-office in namespace bullpen"}},
		"no manager is ready": {func(d *desk) {
			d.office = nil
			d.objects = append(d.objects, &corev1.Service{ObjectMeta: meta("bullpen", "bullpen-office"), Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "m"}}})
		}, "logs fix-login", []string{"no manager is ready (0 of its pods are there)", "kubectl --namespace bullpen get pods --selector app=m"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			if test.edit != nil {
				test.edit(d)
			}
			out, errOut, code := d.run(strings.Fields(test.line)...)
			if code != exitError || !strings.HasPrefix(errOut, "error: ") || out != "" {
				t.Errorf("it exits with %d and says %q and %q", code, out, errOut)
			}
			for _, want := range test.says {
				if !strings.Contains(errOut, want) {
					t.Errorf("it does not say %q: %s", want, errOut)
				}
			}
		})
	}
}

// The roles that errors show are those of the page.
func TestThePageHasTheRoles(t *testing.T) {
	page, err := os.ReadFile("../../docs/kubectl-bullpen.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{reachRole, userRole} {
		var lines []string
		for l := range strings.SplitSeq(role, "\n") {
			lines = append(lines, strings.TrimPrefix(l, "    "))
		}
		if !strings.Contains(string(page), "```yaml\n"+strings.Join(lines, "\n")+"\n```") {
			t.Errorf("the page has no block like this:\n%s", role)
		}
	}
}

func TestThePortOfTheService(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "health", ContainerPort: 8081}, {Name: "office", ContainerPort: 9443}}}}}}
	for name, test := range map[string]struct {
		port corev1.ServicePort
		want int
	}{
		"a name":                 {corev1.ServicePort{Port: 443, TargetPort: intstr.Parse("office")}, 9443},
		"a name that is missing": {corev1.ServicePort{Port: 443, TargetPort: intstr.Parse("web")}, 8443},
		"a number":               {corev1.ServicePort{Port: 443, TargetPort: intstr.Parse("7443")}, 7443},
		"the Service's own":      {corev1.ServicePort{Port: 443}, 443},
	} {
		t.Run(name, func(t *testing.T) {
			if got := portOf(&corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{test.port}}}, pod); got != test.want {
				t.Errorf("it is %d, not %d", got, test.want)
			}
		})
	}
	if got := portOf(&corev1.Service{}, pod); got != 8443 {
		t.Errorf("without a port, it is %d", got)
	}
}

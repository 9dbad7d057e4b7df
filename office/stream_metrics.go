package office

// This file has the metrics of streams. Labels are bounded: no session, no user.

import "github.com/prometheus/client_golang/prometheus"

// Why a stream ended without a close: the peer was gone or did not read.
const (
	cutSlow = "slow"
	cutGone = "gone"
)

type streamMetrics struct {
	watchers prometheus.Gauge
	frames   *prometheus.CounterVec
	ends     *prometheus.CounterVec
}

func newStreamMetrics() *streamMetrics {
	return &streamMetrics{
		watchers: prometheus.NewGauge(prometheus.GaugeOpts{Name: "bullpen_office_watchers", Help: "Streams of sessions that are open."}),
		frames: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bullpen_office_stream_frames_total", Help: "Frames sent to watchers of sessions, by type.",
		}, []string{"type"}),
		ends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bullpen_office_stream_ends_total",
			Help: "Streams that ended, by close code; slow for watchers that were cut, gone for those who left.",
		}, []string{"code"}),
	}
}

func (m *streamMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.watchers, m.frames, m.ends}
}

package office

// This file has the office's metrics. Labels are bounded: no item, no session.

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	authFailures *prometheus.CounterVec
	offers       prometheus.Counter
	rounds       *prometheus.CounterVec
	messages     *prometheus.CounterVec
	replaced     prometheus.Counter
	streams      *streamMetrics
}

func newMetrics() *metrics {
	return &metrics{
		authFailures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bullpen_office_auth_failures_total", Help: "Connections refused at hello, by reason.",
		}, []string{"reason"}),
		offers: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "bullpen_office_offers_total", Help: "Offers made; the same offer after a reconnect counts once.",
		}),
		rounds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bullpen_office_rounds_total", Help: "Rounds that ended, by outcome.",
		}, []string{"outcome"}),
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bullpen_office_messages_total", Help: "Messages from agents, by type and result (ok or the error code).",
		}, []string{"type", "result"}),
		replaced: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "bullpen_office_replaced_connections_total", Help: "Connections that a newer one of the same person replaced.",
		}),
		streams: newStreamMetrics(),
	}
}

func (m *metrics) register(r prometheus.Registerer, connections func() int) error {
	gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "bullpen_office_connections", Help: "Agents connected.",
	}, func() float64 { return float64(connections()) })
	var errs []error
	for _, c := range append(m.streams.collectors(), m.authFailures, m.offers, m.rounds, m.messages, m.replaced, gauge) {
		errs = append(errs, r.Register(c))
	}
	return errors.Join(errs...)
}

// Package dispatch decides what happens to work items: a snapshot and a time go in, transitions and offers come out.
//
// Everything here is pure. The functions in round.go carry one item through a round, as its agent's messages ask. Next
// looks at one person and decides what the office does by itself: end a round that is lost or too long, or make the next
// offer. Hold says why an item cannot run yet. Reconcile brings an item in line with its object.
package dispatch

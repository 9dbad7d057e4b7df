package sqlite

import "github.com/bullpen-dev/bullpen/office/store"

// TODO: gone once every method is built.
type (
	unbuiltReader1 struct{ store.Reader }
	unbuiltReader2 struct{ unbuiltReader1 }
	unbuiltReader  struct{ unbuiltReader2 }
	unbuiltTx1     struct{ store.Tx }
	unbuiltTx2     struct{ unbuiltTx1 }
	unbuiltTx      struct{ unbuiltTx2 }
)

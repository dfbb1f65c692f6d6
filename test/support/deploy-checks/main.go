// Checks of the files in deploy/, with the code of the programs that read them.
//
//	deploy-checks promql < JSON     rules and queries of Prometheus
//	deploy-checks compose FILE      a compose file, as docker compose reads it
package main

import (
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	switch {
	case len(os.Args) == 2 && os.Args[1] == "promql":
		runQueries()
	case len(os.Args) == 3 && os.Args[1] == "compose":
		checkCompose(os.Args[2])
	default:
		log.Fatal("usage: deploy-checks promql | deploy-checks compose FILE")
	}
}

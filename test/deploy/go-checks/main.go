// Checks of the files in deploy/, with the code of the programs that read them.
//
//	deploy-checks promql < JSON     rules and queries of Prometheus
//	deploy-checks compose FILE      a compose file, as docker compose reads it
//	deploy-checks promlint < TEXT   complaints about the names and types of scraped metrics
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

func main() {
	log.SetFlags(0)
	switch {
	case len(os.Args) == 2 && os.Args[1] == "promql":
		runQueries()
	case len(os.Args) == 3 && os.Args[1] == "compose":
		checkCompose(os.Args[2])
	case len(os.Args) == 2 && os.Args[1] == "promlint":
		problems, err := promlint.New(os.Stdin).Lint()
		if err != nil {
			log.Fatal(err)
		}
		for _, problem := range problems {
			fmt.Printf("%s: %s\n", problem.Metric, problem.Text)
		}
	default:
		log.Fatal("usage: deploy-checks promql | deploy-checks compose FILE | deploy-checks promlint")
	}
}

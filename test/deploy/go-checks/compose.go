package main

import (
	"context"
	"fmt"
	"log"

	"github.com/compose-spec/compose-go/v2/cli"
)

// checkCompose loads a file with its schema, its variables from the environment, and its references. Standard output
// has the names of the services.
func checkCompose(file string) {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithOsEnv, cli.WithName("check"))
	if err != nil {
		log.Fatal(err)
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range project.ServiceNames() {
		fmt.Println(name)
	}
}

// The gateway that the tests of real gateways start: MinIO as it last spoke web.* JSON-RPC.
package main

import (
	"os"

	minio "github.com/minio/minio/cmd"
	_ "github.com/minio/minio/cmd/gateway"
)

func main() { minio.Main(os.Args) }

module dealgate/real-gateway

go 1.16

require (
	github.com/json-iterator/go v1.1.12 // indirect
	github.com/minio/minio v0.0.0-20210616231926-180eabaa8eb1
)

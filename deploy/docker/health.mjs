// The health check of the container: exit code 0 while the process answers. It reads the same variables as the server;
// HEALTH_PORT is for `dealgate services`, which has no endpoint.
import { request as http } from 'node:http'
import { request as https } from 'node:https'

const { DEALGATE_PORT, DEALGATE_TLS_CERT, HEALTH_PORT } = process.env
const send = DEALGATE_TLS_CERT && !HEALTH_PORT ? https : http
const port = HEALTH_PORT || DEALGATE_PORT || '9000'
const request = send({ host: '127.0.0.1', port, path: '/-/live', rejectUnauthorized: false, timeout: 4000 })
request.on('response', ({ statusCode }) => process.exit(HEALTH_PORT || statusCode === 200 ? 0 : 1))
request.on('timeout', () => process.exit(1))
request.on('error', () => process.exit(1))
request.end()

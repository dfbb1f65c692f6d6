/**
 * The least that a reverse proxy of Node can be: `http.createServer` and `http.request` with kept connections, and
 * nothing else. Its CPU time is the measure for what dealgate adds. Argument: the port to forward to.
 */
import http from 'node:http'

const port = Number(process.argv[2])
const agent = new http.Agent({ keepAlive: true, maxSockets: 64 })

const server = http.createServer((incoming, outgoing) => {
  const { method, url, headers } = incoming
  const request = http.request({ agent, host: '127.0.0.1', port, method, path: url, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(outgoing)
  })
  request.on('error', () => outgoing.destroy())
  incoming.pipe(request)
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(typeof address === 'object' ? address?.port : '')
})
process.on('SIGTERM', () => process.exit())

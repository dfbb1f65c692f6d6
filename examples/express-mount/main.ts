/**
 * An S3 endpoint inside an Express app, under /storage, beside the app's own routes. Signatures stay valid because they
 * cover the path as the client sent it.
 *
 *   node dist/examples/express-mount/main.js
 *   aws --endpoint-url http://127.0.0.1:8080/storage s3 ls
 */
import { createServer } from 'node:http'
import { createProxy, startServices } from 'dealgate'
import express from 'express'

interface Mounted {
  readonly url: string
  stop(): Promise<void>
}

export async function start(data: string, port: number): Promise<Mounted> {
  const services = await startServices({ data: `${data}/services`, gateway: { host: '127.0.0.1', port: 0 } })
  const proxy = await createProxy({
    gateway: { url: services.gateway.url, account: services.gateway.credentials },
    identities: [{ accessKeyId: 'example-key', secretAccessKey: 'example-secret' }],
    data: `${data}/state`,
  })

  const app = express()
  app.get('/hello', (_request, response) => void response.send('not S3\n'))
  app.use('/storage', proxy)

  const server = createServer(app)
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address ? address.port : port}`,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await proxy.close()
      await services.stop()
    },
  }
}

if (import.meta.url === `file://${process.argv[1]}`) {
  const { url } = await start('./dealgate-data', 8080)
  console.log(
    `AWS_ACCESS_KEY_ID=example-key AWS_SECRET_ACCESS_KEY=example-secret aws --endpoint-url ${url}/storage s3 ls`,
  )
}

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Logger } from '../../common/log.js'
import { isForS3, misdirected } from '../../common/misdirected.js'
import type { ScrapeFor } from '../../src/server/metrics/metrics-plugin.js'

interface MetricsServerOptions {
  readonly host: string
  /** 0 selects a free port. */
  readonly port: number
  readonly scrape: ScrapeFor
  readonly log: Logger
}

interface MetricsServer {
  /** Address of the metrics. */
  readonly url: string
  close(): Promise<void>
}

const PATHS = new Set(['/-/metrics', '/metrics'])

/**
 * Serves the metrics alone, without a signature, on an address of their own: keep it to the network of the monitoring.
 * Rejects with the system error if it cannot listen.
 */
export async function serveMetrics({ host, port, scrape, log }: MetricsServerOptions): Promise<MetricsServer> {
  const server = createServer((incoming, outgoing) => {
    answer(incoming, outgoing, scrape).catch((err) => {
      log.error({ err }, 'the metrics cannot be read')
      if (!outgoing.headersSent) outgoing.writeHead(500).end()
      else outgoing.destroy()
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
  const { address, family, port: used } = server.address() as AddressInfo
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${used}/-/metrics`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function answer(incoming: IncomingMessage, outgoing: ServerResponse, scrape: ScrapeFor): Promise<void> {
  const [path = ''] = (incoming.url ?? '').split('?')
  if (isForS3(incoming.headers, incoming.url ?? '')) {
    const { status, type, body } = misdirected('the port of the metrics of dealgate')
    outgoing.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body)
  } else if (!PATHS.has(path)) {
    outgoing.writeHead(404, { 'content-type': 'text/plain' }).end('The metrics are at /-/metrics.\n')
  } else if (incoming.method !== 'GET' && incoming.method !== 'HEAD') {
    outgoing.writeHead(405, { allow: 'GET, HEAD' }).end()
  } else {
    const { contentType, body } = await scrape(incoming.headers.accept)
    outgoing.writeHead(200, { 'content-type': contentType, 'content-length': Buffer.byteLength(body) }).end(body)
  }
}

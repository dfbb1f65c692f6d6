import cluster from 'node:cluster'
import { once } from 'node:events'
import { connect, Server } from 'node:net'
import t, { type Test } from 'tap'
import { createHttpServer, listen } from '../../../services/http/server.js'
import { silentLog } from '../../../services/log.js'
import { until } from '../../support/waiting.js'

/** Servers of a worker have a second port: `onOwn` is called with each before it listens. */
function asWorker(t: Test, onOwn: (server: Server) => void): void {
  const { listen } = Server.prototype
  const { isWorker } = cluster
  Object.assign(cluster, { isWorker: true })
  Server.prototype.listen = function (this: Server, ...given: unknown[]) {
    if ((given[0] as { exclusive?: boolean }).exclusive) onOwn(this)
    return (listen as (...given: unknown[]) => Server).apply(this, given)
  } as typeof listen
  t.teardown(() => {
    Object.assign(cluster, { isWorker })
    Server.prototype.listen = listen
  })
}

function create(warn: (fields: object, message: string) => void = () => {}) {
  const options = {
    maxHeaderBytes: 8192,
    maxConnections: 10,
    log: { ...silentLog, warn },
    describe: () => ({ type: 'text/plain', text: '' }),
  }
  return createHttpServer(options, (_, response) => response.end())
}

async function isRefused(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return false
  } catch {
    return true
  } finally {
    socket.destroy()
  }
}

t.test('a worker whose own port cannot be had serves on none', async (t) => {
  asWorker(t, (own) => own.prependOnceListener('listening', () => own.close().emit('error', new Error('no port'))))
  const server = create()
  let port = 0
  server.once('listening', () => (port = (server.address() as { port: number }).port))
  await t.rejects(listen(server, '127.0.0.1', 0), { message: 'no port' })
  t.not(port, 0)
  t.ok(await isRefused(port))
})

t.test('a connection that cannot be accepted ends no process', async (t) => {
  const told: object[] = []
  let own: Server | undefined
  asWorker(t, (server) => (own = server))
  const server = create((fields) => told.push(fields))
  const listening = await listen(server, '127.0.0.1', 0)
  t.not(listening.ownUrl, listening.url)
  for (const one of [server, own]) one?.emit('error', Object.assign(new Error('accept'), { code: 'EMFILE' }))
  t.match(told, [{ err: { code: 'EMFILE' } }, { err: { code: 'EMFILE' } }])
  for (const url of [listening.url, listening.ownUrl]) t.equal((await fetch(url)).status, 200)
  await listening.close(0)
  await until('both are closed', async () => (await isRefused(listening.port)) && !own?.listening)
})

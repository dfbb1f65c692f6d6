import { createServer, type IncomingMessage } from 'node:http'
import { json } from 'node:stream/consumers'
import { cpuMs } from '../cpu-time.js'
import { type HostedCommand, HostedServer } from './hosted-server.js'

// Runs the servers of one test file after another in one process, over TCP as ever: the code is loaded and compiled
// once, which costs most of the time of a short server. Calls come over a Unix socket, the argument.

const servers = new Map<string, HostedServer>()
let last = 0
/** CPU time when the servers of the last test file had stopped, ms. */
let counted = 0

const control = createServer(async (request, response) => {
  const answer = await run(request).catch(({ message, exitCode = 1 }) => ({ failure: message, exitCode }))
  response.end(JSON.stringify(answer))
})

async function run(request: IncomingMessage): Promise<object> {
  const [, call, id = ''] = (request.url ?? '').split('/')
  if (call === 'start') return start((await json(request)) as HostedCommand)
  if (call === 'stop') return stop([id])
  const stopped = await stop([...servers.keys()])
  const before = counted
  counted = cpuMs()
  return { ...stopped, cpuMs: counted - before }
}

async function start(command: HostedCommand): Promise<object> {
  const server = new HostedServer(command.log)
  const stdout = await server.start(command)
  const id = String(++last)
  servers.set(id, server)
  return { id, stdout }
}

/** Rejects with the first failure when all have stopped. */
async function stop(ids: readonly string[]): Promise<object> {
  const ended = await Promise.allSettled(
    ids.map(async (id) => {
      const server = servers.get(id)
      servers.delete(id)
      await server?.stop()
    }),
  )
  for (const end of ended) if (end.status === 'rejected') throw end.reason
  return { started: last }
}

control.listen(process.argv[2], () => process.stdout.write('ready\n'))
// The runner holds the other end.
process.stdin.on('end', () => process.exit()).resume()

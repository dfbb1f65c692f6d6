/** The load process: sends requests over kept connections, and compares each answer. Its parent is `load.ts`. */
import { connect } from 'node:net'
import { percentile } from '../usage/statistics.js'
import { type Answer, AnswerReader } from './answer-reader.js'
import { contentOf } from './content.js'
import type { Job, Outcome, Report, Requests, Shot } from './job.js'
import { transfer } from './transfer.js'

process.on('message', (job: Job) => {
  const report = (answer: Report) => process.send?.(answer)
  const ended = 'transfer' in job ? transfer(job.transfer) : run(job.requests)
  ended.then(
    (outcome) => report({ outcome }),
    (error: unknown) => report({ failure: error instanceof Error ? error.message : String(error) }),
  )
})

async function run(job: Requests): Promise<Outcome> {
  const latencies: number[] = []
  const packets = job.shots.map((shot) => packetOf(job, shot))
  let next = 0
  const take = () => (next < job.count ? next++ % packets.length : undefined)
  const cpu = process.cpuUsage()
  const started = performance.now()
  await Promise.all(Array.from({ length: job.connections }, () => oneConnection(job, packets, take, latencies)))
  const seconds = (performance.now() - started) / 1000
  const { user, system } = process.cpuUsage(cpu)
  return {
    seconds,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    cpuSeconds: (user + system) / 1e6,
  }
}

function packetOf({ sends, size }: Requests, { head, path, text }: Shot): Buffer {
  const body = text === undefined ? (sends ? contentOf(path, size) : Buffer.alloc(0)) : Buffer.from(text)
  return Buffer.concat([Buffer.from(head, 'latin1'), body])
}

/** Sends one request after the other until none is left; anew connected where the server closes after an answer. */
function oneConnection(
  job: Requests,
  packets: readonly Buffer[],
  take: () => number | undefined,
  latencies: number[],
): Promise<void> {
  return new Promise((resolve, reject) => {
    let current = take()
    const open = () => {
      if (current === undefined) return resolve()
      const socket = connect(job.port, job.host)
      const reader = new AnswerReader()
      let sent = 0
      let answered = false
      const fail = (error: Error) => {
        socket.destroy()
        reject(error)
      }
      const send = () => {
        answered = false
        sent = performance.now()
        socket.write(packets[current ?? 0] as Buffer)
      }
      socket.setNoDelay(true)
      socket.on('error', fail)
      socket.on('close', () => !answered && reject(new Error('the server closed the connection')))
      socket.on('connect', send)
      socket.on('data', (bytes) => {
        const shot = job.shots[current ?? -1]
        if (!shot || answered) return fail(new Error('an answer without a request'))
        try {
          const answer = reader.take(bytes, shot.head.startsWith('HEAD '))
          if (!answer) return
          latencies.push(performance.now() - sent)
          compare(job, shot, answer)
          answered = true
          current = take()
          if (current !== undefined && !answer.closes) return send()
          socket.destroy()
          open()
        } catch (error) {
          fail(error as Error)
        }
      })
    }
    open()
  })
}

function compare({ expected, size }: Requests, shot: Shot, { status, length, body }: Answer): void {
  const line = shot.head.slice(0, shot.head.indexOf('\r\n'))
  const wrong = (what: string) => new Error(`${line}: ${what}: ${body.toString('utf8', 0, 300)}`)
  if (status !== expected.status) throw wrong(`status ${status}`)
  if (expected.body === 'content' && !body.equals(contentOf(shot.path, size))) throw wrong('wrong bytes')
  if (expected.body === 'length' && length !== size) throw wrong(`length ${length}`)
  if (expected.contains && count(body, expected.contains.text) !== expected.contains.times)
    throw wrong(`not ${expected.contains.times} times ${expected.contains.text}`)
}

function count(body: Buffer, text: string): number {
  let found = 0
  for (let at = body.indexOf(text); at >= 0; at = body.indexOf(text, at + text.length)) found++
  return found
}

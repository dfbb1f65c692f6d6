import { connect } from 'node:net'
import { PERIOD, periodOf } from './content.js'
import { chunksOf, Framing } from './frames.js'
import type { Outcome, Transfer } from './job.js'

const BUFFER_BYTES = 1024 * 1024
const HEAD_END = '\r\n\r\n'

/** Sends or fetches one large object over a connection of its own, and compares each byte that arrives. */
export async function transfer(job: Transfer): Promise<Outcome> {
  const cpu = process.cpuUsage()
  const started = performance.now()
  await (job.sends ? upload(job) : download(job))
  const seconds = (performance.now() - started) / 1000
  const { user, system } = process.cpuUsage(cpu)
  return { seconds, p50: seconds * 1000, p99: seconds * 1000, cpuSeconds: (user + system) / 1e6 }
}

function upload({ host, port, head, path, size, frames }: Transfer): Promise<void> {
  const period = periodOf(path, PERIOD)
  return new Promise((resolve, reject) => {
    const socket = connect(port, host)
    const done = (error?: Error) => {
      socket.destroy()
      if (error) reject(error)
      else resolve()
    }
    let answer = ''
    socket.on('error', done)
    socket.on('data', (bytes) => {
      answer += bytes.toString('latin1')
      if (!answer.includes(HEAD_END)) return
      if (answer.startsWith('HTTP/1.1 100')) answer = answer.slice(answer.indexOf(HEAD_END) + HEAD_END.length)
      else if (left > 0) done(new Error(`an answer before the last byte: ${answer.slice(0, 500)}`))
      else done(answer.startsWith('HTTP/1.1 200 ') ? undefined : new Error(answer.slice(0, 500)))
    })
    socket.on('close', () => done(new Error('the server closed the connection')))
    socket.write(head, 'latin1')
    let left = size
    const pump = () => {
      while (left > 0) {
        const block = left >= PERIOD ? period : period.subarray(0, left)
        left -= block.length
        if (!socket.write(block)) return void socket.once('drain', pump)
      }
    }
    const chunks = frames && chunksOf(period, size)
    const framing = frames && new Framing(frames)
    const pumpChunks = () => {
      while (chunks && framing && left > 0) {
        const chunk = chunks.next().value as Buffer
        left -= chunk.length
        socket.cork()
        socket.write(framing.header(chunk), 'latin1')
        socket.write(chunk)
        const free = socket.write(left > 0 ? '\r\n' : `\r\n${framing.end()}`, 'latin1')
        socket.uncork()
        if (!free) return void socket.once('drain', pumpChunks)
      }
    }
    if (frames) pumpChunks()
    else pump()
  })
}

function download({ host, port, head, path, size }: Transfer): Promise<void> {
  const period = periodOf(path, PERIOD)
  // Long enough for a whole buffer from any position.
  const wanted = Buffer.concat([period, period, period])
  return new Promise((resolve, reject) => {
    let start = Buffer.alloc(0)
    let at = -1
    const done = (error?: Error) => {
      socket.destroy()
      if (error) reject(error)
      else resolve()
      return false
    }
    const compare = (bytes: Buffer) => {
      const from = at % PERIOD
      if (!bytes.equals(wanted.subarray(from, from + bytes.length))) return done(new Error(`wrong bytes after ${at}`))
      at += bytes.length
      if (at > size) return done(new Error('more bytes than the object has'))
      return at === size ? done() : true
    }
    const take = (length: number, buffer: Uint8Array) => {
      const bytes = Buffer.from(buffer.buffer, buffer.byteOffset, length)
      if (at >= 0) return compare(bytes)
      start = Buffer.concat([start, bytes])
      const end = start.indexOf(HEAD_END, 0, 'latin1')
      if (end < 0) return true
      const text = start.toString('latin1', 0, end)
      if (!text.startsWith('HTTP/1.1 200 ')) return done(new Error(text.slice(0, 500)))
      at = 0
      return compare(start.subarray(end + HEAD_END.length))
    }
    const socket = connect({ host, port, onread: { buffer: Buffer.alloc(BUFFER_BYTES), callback: take } })
    socket.on('error', done)
    socket.on('close', () => done(new Error(`the body ended after ${at} of ${size} bytes`)))
    socket.write(head, 'latin1')
  })
}

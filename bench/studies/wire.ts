import { connect, type Socket } from 'node:net'
import type { Endpoint } from './target.js'

/**
 * As little client as can be, so that the servers are what is measured: one request on one connection, bytes counted,
 * not kept.
 */
const BLOCK = Buffer.alloc(1024 * 1024, 'dealgate')

/** Sends `size` bytes with PUT; resolves to the status. */
export function upload(to: Endpoint, path: string, headers: Record<string, string>, size: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(to.port, to.host)
    socket.on('error', reject)
    socket.on('data', (data) => {
      resolve(Number(data.toString('latin1').split(' ')[1]))
      socket.destroy()
    })
    socket.write(head('PUT', to, path, { ...headers, 'content-length': String(size) }))
    let left = size
    const pump = () => {
      while (left > 0) {
        const block = left >= BLOCK.length ? BLOCK : BLOCK.subarray(0, left)
        left -= block.length
        if (!socket.write(block)) return void socket.once('drain', pump)
      }
    }
    pump()
  })
}

/** Fetches with GET and counts the body's bytes; resolves to the status. Rejects when the body is short. */
export function download(from: Endpoint, path: string, headers: Record<string, string>, size: number): Promise<number> {
  return new Promise((resolve, reject) => {
    let status = 0
    let start = Buffer.alloc(0)
    let body = -1
    const socket: Socket = connect({
      host: from.host,
      port: from.port,
      onread: {
        buffer: Buffer.alloc(1024 * 1024),
        callback(length, buffer) {
          if (body >= 0) body += length
          else {
            start = Buffer.concat([start, buffer.subarray(0, length)])
            const end = start.indexOf('\r\n\r\n')
            if (end < 0) return true
            status = Number(start.toString('latin1', 0, 12).split(' ')[1])
            body = start.length - end - 4
          }
          if (body >= size || status !== 200) {
            resolve(status)
            socket.destroy()
          }
          return true
        },
      },
    })
    socket.on('error', reject)
    socket.on('end', () => reject(new Error(`the body ended after ${body} of ${size} bytes`)))
    socket.write(head('GET', from, path, headers))
  })
}

/** Fetches at a pace of its own for so many seconds, then leaves. Rejects when nothing comes. */
export function readSlowly(
  from: Endpoint,
  path: string,
  headers: Record<string, string>,
  { bytesPerSecond, seconds }: { readonly bytesPerSecond: number; readonly seconds: number },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: from.host, port: from.port })
    const started = performance.now()
    let bytes = 0
    socket.on('error', reject)
    socket.on('data', (data) => {
      bytes += data.length
      const ahead = (bytes / bytesPerSecond) * 1000 - (performance.now() - started)
      if (ahead <= 0) return
      socket.pause()
      setTimeout(() => socket.resume(), ahead)
    })
    setTimeout(() => {
      socket.destroy()
      if (bytes > bytesPerSecond) resolve()
      else reject(new Error(`only ${bytes} bytes came`))
    }, seconds * 1000)
    socket.write(head('GET', from, path, headers))
  })
}

function head(method: string, to: Endpoint, path: string, headers: Record<string, string>): string {
  const lines = Object.entries({ host: `${to.host}:${to.port}`, ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`
}

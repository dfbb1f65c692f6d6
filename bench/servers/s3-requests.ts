import { type Endpoint, sign } from '../../test/suites/sign.js'
import { contentHash } from '../load/content.js'
import { type Frames, framedLength } from '../load/frames.js'
import type { Expected, Shot } from '../load/job.js'
import { LISTED, type Operation } from './subject.js'

/** Requests of S3, signed in the header with version 4; a PUT also signs the hash of its body. */
export function s3Requests(server: Endpoint) {
  return {
    shot(operation: Operation, path: string, size: number): Shot {
      const method = operation === 'LIST' ? 'GET' : operation
      const target = operation === 'LIST' ? `/${path}?list-type=2&max-keys=${LISTED}` : `/${path}`
      const put = operation === 'PUT'
      const signed = sign(server, { method, target, payloadHash: put ? contentHash(path, size) : undefined })
      return { path, head: headOf(method, target, { ...signed.headers, ...(put && { 'content-length': `${size}` }) }) }
    },
    large(method: 'GET' | 'PUT', path: string, size: number, headers: Readonly<Record<string, string>>): string {
      const target = `/${path}`
      const { 'x-amz-content-sha256': payloadHash, ...rest } = headers
      const signed = sign(server, { method, target, headers: rest, ...(payloadHash && { payloadHash }) })
      return headOf(method, target, { ...signed.headers, ...(method === 'PUT' && { 'content-length': `${size}` }) })
    },
    chunked(path: string, size: number, trailer: string | undefined): { head: string; frames: Frames } {
      const target = `/${path}`
      const payloadHash =
        trailer === undefined ? 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD' : 'STREAMING-UNSIGNED-PAYLOAD-TRAILER'
      const [name] = trailer?.split(':') ?? []
      const headers = {
        'content-encoding': 'aws-chunked',
        'x-amz-decoded-content-length': `${size}`,
        ...(name !== undefined && { 'x-amz-trailer': name }),
      }
      const { key, seed, timestamp, scope, ...signed } = sign(server, { method: 'PUT', target, headers, payloadHash })
      const signing = { key: key.toString('base64'), seed, timestamp, scope }
      const frames: Frames = trailer === undefined ? { signing } : { trailer }
      const length = `${framedLength(size, frames)}`
      return { head: headOf('PUT', target, { ...signed.headers, 'content-length': length }), frames }
    },
    expected(operation: Operation): Expected {
      if (operation === 'DELETE') return { status: 204 }
      if (operation === 'LIST') return { status: 200, contains: { text: '<Key>', times: LISTED } }
      return { status: 200, ...bodyOf(operation) }
    },
  }
}

export function bodyOf(operation: Operation): Pick<Expected, 'body'> {
  if (operation === 'GET') return { body: 'content' }
  return operation === 'HEAD' ? { body: 'length' } : {}
}

export function headOf(method: string, target: string, headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`
}

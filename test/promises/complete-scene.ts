import {
  CompleteMultipartUploadCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import type { Test } from 'tap'
import { createLogger } from '../../common/log.js'
import type { State } from '../../src/api/state.js'
import type { ProxyOptions } from '../../src/server/proxy-options.js'
import { openState } from '../../src/state/open-state.js'
import { temporaryFolder } from '../support/content/folders.js'
import { Between } from '../support/gateway/between.js'
import { startInProcess } from '../support/server/in-process.js'
import type { Mode } from '../support/server/modes.js'

export const Bucket = 'repeated'

/** Of a request whose outcome is unknown. */
export const unavailable = { name: /ServiceUnavailable|SlowDown/ }

/** Begins an upload of one part. What it returns completes it. */
export async function beginUpload(
  s3: S3Client,
  Key: string,
  condition: { IfNoneMatch?: '*'; IfMatch?: string | undefined } = {},
  Body: string | Buffer = 'upload',
) {
  const { UploadId } = await s3.send(new CreateMultipartUploadCommand({ Bucket, Key }))
  const { ETag } = await s3.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber: 1, Body }))
  const upload = { Bucket, Key, UploadId, MultipartUpload: { Parts: [{ PartNumber: 1, ETag }] }, ...condition }
  return (by = s3) => by.send(new CompleteMultipartUploadCommand(upload))
}

/** A server that reaches its gateway through `between`. */
export async function start(t: Test, mode: Mode, options: Partial<ProxyOptions> = {}) {
  const server = await startInProcess(t, mode)
  const { s3, gateway } = server
  await s3.send(new CreateBucketCommand({ Bucket }))
  const between = await Between.start(t, gateway)
  const restart = (more: Partial<ProxyOptions> = {}) =>
    server.restart({ gateway: { url: between.url, account: gateway.account }, ...options, ...more })
  await restart()
  const put = (Key: string, Body: string) => s3.send(new PutObjectCommand({ Bucket, Key, Body }))
  const remove = (Key: string) => s3.send(new DeleteObjectCommand({ Bucket, Key }))
  const get = async (Key: string) => (await s3.send(new GetObjectCommand({ Bucket, Key }))).Body?.transformToString()
  const begin = (...given: Tail<Parameters<typeof beginUpload>>) => beginUpload(s3, ...given)
  /** The gateway stores the object, and every answer to the upload is lost. */
  const loseAnswer = async (Key: string, complete: () => Promise<unknown>) => {
    between.fate = ({ method, path }) => (method === 'PUT' && path.endsWith(`/${Key}`) ? 'cut-after' : 'pass')
    await t.rejects(complete(), unavailable, `${Key}: the outcome is unknown`)
    between.fate = () => 'pass'
  }
  return { s3, gateway, between, restart, put, remove, get, begin, loseAnswer }
}

type Tail<T extends readonly unknown[]> = T extends readonly [unknown, ...infer Rest] ? Rest : never

/** An object whose member of this name is another one. */
export function withMember<T extends object, N extends keyof T>(of: T, name: N, member: T[N]): T {
  return new Proxy(of, {
    get(target, asked) {
      if (asked === name) return member
      const own: unknown = Reflect.get(target, asked)
      return typeof own === 'function' ? own.bind(target) : own
    },
  })
}

/** A server with a state that the test changes. */
export async function startWithState(t: Test, mode: Mode, change: (state: State) => Partial<State>) {
  const state = await openState({ data: temporaryFolder(t), log: createLogger({ level: 'silent' }) })
  t.teardown(() => state.close())
  return start(t, mode, { state: { ...state, ...change(state), shared: state.shared } })
}

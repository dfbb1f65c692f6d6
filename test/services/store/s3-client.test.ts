import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { S3Client } from '../../../services/store/s3-client.js'
import { isPassing, S3Refusal } from '../../../services/store/s3-refusal.js'
import { clientOf, first, refuse } from './local-store.js'

const read = (client: S3Client) => client.retry((_, signal) => client.ask({ method: 'GET', key: 'key' }, signal))

t.test('what fails for good is not tried again', async (t) => {
  const coded = (code: string) => Object.assign(new Error(code), { code })
  for (const code of ['ECONNREFUSED', 'ECONNRESET', 'EAI_AGAIN', 'ETIMEDOUT']) t.ok(isPassing(coded(code)), code)
  for (const code of ['ENOTFOUND', 'CERT_HAS_EXPIRED', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'ERR_TLS_CERT_ALTNAME_INVALID'])
    t.notOk(isPassing(coded(code)), code)
  t.notOk(isPassing(new RangeError('There are no credentials.')))
  t.notOk(isPassing(new S3Refusal(501, 'NotImplemented', '')))
})

t.test('an attempt has no end while bytes move, and no third one begins after the longest wait', async (t) => {
  const limits = { maxWaitMs: 1, idleMs: 10_000 }
  const slowly = async (_: IncomingMessage, response: ServerResponse): Promise<void> => {
    for (let turn = 0; turn < 10; turn++) {
      response.write('x')
      await sleep(20)
    }
    response.end()
  }
  t.equal((await read(await clientOf(t, slowly, limits))).body.toString(), 'x'.repeat(10))
  let asked = 0
  const fail = (_: IncomingMessage, response: ServerResponse): void => {
    asked++
    refuse(response, 503, 'SlowDown')
  }
  await t.rejects(read(await clientOf(t, fail, limits)), /503 SlowDown/)
  t.equal(asked, 2)
})

t.test('credentials that have changed', async (t) => {
  let given = first
  let gone = false
  const waiting: ServerResponse[] = []
  const serve: RequestListener = ({ headers }, response) => {
    if (headers.authorization?.includes('Credential=second/')) response.end('bytes')
    // All are refused together.
    else if (waiting.push(response) === 5) for (const one of waiting.splice(0)) refuse(one, 403, 'InvalidAccessKeyId')
  }
  const client = await clientOf(t, serve, undefined, () => {
    if (gone) throw new RangeError('There are no credentials.')
    return given
  })
  gone = true
  const refused = await Promise.allSettled(Array.from({ length: 5 }, () => read(client)))
  for (const one of refused) t.match(one, { status: 'rejected', reason: { status: 403 } }, 'no file for a moment')
  gone = false
  given = { accessKeyId: 'second', secretAccessKey: 'other' }
  const all = await Promise.all(Array.from({ length: 5 }, () => read(client)))
  for (const { body } of all) t.equal(body.toString(), 'bytes')
})

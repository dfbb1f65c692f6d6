import t, { type Test } from 'tap'
import { bytes, KiB, MiB, md5 } from '../support/content/content.js'
import { type Dealgate, inEachMode } from '../support/server/dealgate.js'
import { type Answer, send, targetOf } from '../support/sign/send.js'

/**
 * Conditional writes are atomic among the clients of one proxy; CompleteMultipartUpload is idempotent (docs/design.md,
 * promise 7).
 */

const BUCKET = 'conditional'
const RACERS = Array.from({ length: 12 }, (_, i) => i)

inEachMode(t, async (t, server) => {
  t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  for (const size of [10, 600 * KiB]) await t.test(`races of ${size} bytes`, (t) => races(t, server, size))
  await t.test('Complete, many times', (t) => completing(t, server))
})

async function races(t: Test, server: Dealgate, size: number): Promise<void> {
  const target = targetOf(BUCKET, `race-${size}`)
  const race = async (headers: Record<string, string>, round: string) => {
    const answers = await Promise.all(
      RACERS.map((i) => send(server, { method: 'PUT', target, body: bytes(`${round} ${i}`, size), headers })),
    )
    const winners = RACERS.filter((i) => answers[i]?.status === 200)
    t.equal(winners.length, 1, `${round}: one has won`)
    t.same(
      answers.filter(({ status }) => status !== 200).map(({ code }) => code),
      RACERS.slice(1).map(() => 'PreconditionFailed'),
      `${round}: the others are told`,
    )
    const got = await send(server, { method: 'GET', target })
    t.equal(md5(got.body), md5(bytes(`${round} ${winners[0]}`, size)), `${round}: the winner’s bytes are there`)
    t.equal(got.headers.etag, answers[winners[0] ?? 0]?.headers.etag)
    return got.headers.etag ?? ''
  }
  let etag = await race({ 'if-none-match': '*' }, 'create')
  etag = await race({ 'if-match': etag }, 'replace')
  const deletes = await Promise.all(RACERS.map(() => send(server, { method: 'DELETE', target })))
  t.ok(deletes.every(({ status }) => status === 204))
  t.equal(
    (await send(server, { method: 'PUT', target, body: Buffer.of(), headers: { 'if-match': '*' } })).code,
    'NoSuchKey',
  )
}

async function completing(t: Test, server: Dealgate): Promise<void> {
  const target = targetOf(BUCKET, 'completed')
  const created = await send(server, { method: 'POST', target: `${target}?uploads` })
  const id = /<UploadId>([^<]+)</.exec(created.body.toString())?.[1]
  const parts = [bytes('1', 5 * MiB), bytes('2', 5)]
  const list: string[] = []
  for (const [i, body] of parts.entries()) {
    const { headers } = await send(server, {
      method: 'PUT',
      target: `${target}?partNumber=${i + 1}&uploadId=${id}`,
      body,
    })
    list.push(`<Part><PartNumber>${i + 1}</PartNumber><ETag>${headers.etag}</ETag></Part>`)
  }
  const document = (entries: string[]) =>
    Buffer.from(`<CompleteMultipartUpload>${entries.join('')}</CompleteMultipartUpload>`)
  const complete = (entries = list) =>
    send(server, { method: 'POST', target: `${target}?uploadId=${id}`, body: document(entries) })
  // Half of the object would be left out, and gone with the upload.
  for (const lost of [`${list[1]}`.replaceAll('Part>', 'part>'), `<Parts>${list[1]}</Parts>`])
    t.equal((await complete([`${list[0]}`, lost])).code, 'MalformedXML', lost)
  const told = ({ status, body }: Answer) => [status, body.toString().replace(/<RequestId>.*/, '')]
  const [first, ...others] = await Promise.all(RACERS.slice(0, 8).map(() => complete()))
  t.equal(first?.status, 200)
  for (const answer of others) t.same(told(answer), told(first as Answer), 'at once')
  t.same(told(await complete()), told(first as Answer), 'and later')
  t.equal((await complete(list.slice(1))).code, 'NoSuchUpload', 'other parts are another request')
  t.equal((await send(server, { method: 'DELETE', target: `${target}?uploadId=${id}` })).code, 'NoSuchUpload')
  t.same((await send(server, { method: 'GET', target })).body, Buffer.concat(parts))
}

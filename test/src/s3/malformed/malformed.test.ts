import t from 'tap'
import type { Endpoint } from '../../../suites/sign.js'
import { type InProcess, startInProcess } from '../../../support/server/in-process.js'
import { type Answer, answerTo, open, presigned, send, sign } from '../../../support/sign/send.js'
import { copies, documents, multipart } from './documents.js'
import { absent, bucketNames, listings, reads } from './reads.js'
import type { Ask, Row } from './row.js'
import { headers, queries } from './signatures.js'
import { writes } from './writes.js'

// What S3 answers to malformed requests: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html and the
// pages of the operations.

const keys = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }
const tables: Readonly<Record<string, readonly Row[]>> = {
  'names of buckets': bucketNames,
  'what is not there': absent,
  listings,
  reads,
  writes,
  copies,
  multipart,
  documents,
  'signatures in headers': headers,
  'signatures in queries': queries,
}

t.test('malformed requests', async (t) => {
  const started: InProcess = await startInProcess(t, 'full', { identities: [keys] })
  const { accessKeyId: accessKey, secretAccessKey: secretKey } = keys
  const server: Endpoint = { endpoint: started.endpoint, accessKey, secretKey, region: 'us-east-1' }
  const made = async (method: string, target: string, text?: string) => {
    const answer = await send(server, { method, target, ...(text !== undefined && { body: Buffer.from(text) }) })
    t.equal(answer.status, 200, `${method} ${target}`)
    return answer.body.toString()
  }
  await made('PUT', '/rows')
  await made('PUT', '/rows/key', 'abc')
  const upload = /<UploadId>([^<]+)</.exec(await made('POST', '/rows/upload?uploads'))?.[1] ?? ''
  await made('PUT', `/rows/upload?partNumber=1&uploadId=${upload}`, 'abc')
  await made('PUT', `/rows/upload?partNumber=2&uploadId=${upload}`, 'abc')

  const rows = Object.values(tables).flat()
  t.ok(rows.length >= 200, `${rows.length} rows`)
  for (const [table, list] of Object.entries(tables)) {
    await t.test(table, async (t) => {
      for (const [what, ask, expected, members = {}] of list) {
        const answer = await asked(server, { ...ask, target: ask.target.replace('{upload}', upload) })
        const found = membersOf(answer)
        t.match({ answer: `${answer.status} ${found.Code}`, ...found }, { answer: expected, ...members }, what)
        for (const name of ['Code', 'Message', 'Resource', 'RequestId', 'HostId'])
          t.ok(found[name] !== undefined && found[name] !== '', `${what}: ${name}`)
        t.equal(answer.headers['x-amz-request-id'], found.RequestId, `${what}: the id of the header`)
      }
    })
  }
  t.equal((await send(server, { method: 'GET', target: '/rows/key' })).body.toString(), 'abc', 'nothing has changed')
  t.equal((await send(server, { method: 'HEAD', target: '/rows/new' })).status, 404)
})

async function asked(server: Endpoint, ask: Ask): Promise<Answer> {
  const { method = 'GET', target, headers = {}, edit, link, anonymous } = ask
  const body = ask.body === undefined ? undefined : Buffer.from(ask.body)
  if (!edit && !link && !anonymous) return send(server, { method, target, headers, ...(body && { body }) })
  const length: Record<string, string> = body ? { 'content-length': String(body.length) } : {}
  let url = target
  let all: Record<string, string | undefined> = { ...headers }
  if (link) url = `${target}?${link(new URL(presigned(server, method, target)).search.slice(1))}`
  if (edit) all = edit(sign(server, { method, target, headers }).headers)
  const sent = Object.entries({ ...length, ...all }).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  )
  const request = open(server, method, url, Object.fromEntries(sent))
  const answer = answerTo(request)
  request.end(body)
  return answer
}

function membersOf({ body }: Answer): Record<string, string> {
  const text = body.toString()
  const inner = /<Error>(.*)<\/Error>/s.exec(text)?.[1] ?? ''
  const members = [...inner.matchAll(/<([\w-]+)>([^<]*)<\/\1>|<([\w-]+)\/>/g)]
  return Object.fromEntries(members.map(([, name, value, empty]) => [name ?? empty ?? '', plain(value ?? '')]))
}

function plain(text: string): string {
  const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' }
  return text
    .replace(/&#x([0-9a-f]+);/gi, (_, hex: string) => String.fromCodePoint(Number.parseInt(hex, 16)))
    .replace(/&#(\d+);/g, (_, number: string) => String.fromCodePoint(Number(number)))
    .replace(/&(lt|gt|quot|apos|amp);/g, (_, name: string) => entities[name] ?? '')
}

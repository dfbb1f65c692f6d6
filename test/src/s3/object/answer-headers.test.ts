import t, { type Test } from 'tap'
import { contentMd5 } from '../../../support/content/content.js'
import { inEachMode, startDealgate } from '../../../support/server/dealgate.js'
import { type Answer, type Endpoint, type Headers, send } from '../../../support/sign/send.js'

const DAY_MS = 86_400_000

const rule = (id: string, content: string) =>
  `<Rule><ID>${id}</ID><Status>Enabled</Status><Filter><Prefix>in/</Prefix></Filter>${content}</Rule>`
const LIFECYCLE = `<LifecycleConfiguration>
  ${rule('three days &#8212; all', '<Expiration><Days>3</Days></Expiration>')}
  ${rule('five days', '<AbortIncompleteMultipartUpload><DaysAfterInitiation>5</DaysAfterInitiation></AbortIncompleteMultipartUpload>')}
  ${rule('two days', '<AbortIncompleteMultipartUpload><DaysAfterInitiation>2</DaysAfterInitiation></AbortIncompleteMultipartUpload>')}
</LifecycleConfiguration>`

type Ask = (method: string, target: string, body?: string, headers?: Headers) => Promise<Answer>

function asking(server: Endpoint): Ask {
  return (method, target, body, headers) =>
    send(server, {
      method,
      target,
      ...(headers && { headers }),
      ...(body !== undefined && { body: Buffer.from(body) }),
    })
}

/** True if the header has the date of the midnight that follows so many days. */
function isIn(days: number, text: string): boolean {
  const left = Date.parse(text) - Date.now()
  return left > days * DAY_MS - 60_000 && left <= (days + 1) * DAY_MS && Date.parse(text) % DAY_MS === 0
}

inEachMode(t, async (t, server) => {
  const ask = asking(server)
  await ask('PUT', '/rules')
  t.equal((await ask('PUT', '/rules?lifecycle', LIFECYCLE)).status, 200)

  await t.test('every write, and every look at the object, says when a rule removes it', async (t) => {
    const check = (what: string, answer: Answer) => {
      t.ok([200, 204, 206].includes(answer.status), `${what}: ${answer.status}`)
      const [, date = '', id] = /^expiry-date="([^"]*)", rule-id="([^"]*)"$/.exec(expiration(answer) ?? '') ?? []
      t.ok(isIn(3, date), `${what}: ${date}`)
      t.equal(id, 'three%20days%20%E2%80%94%20all', what)
    }
    check('PUT', await ask('PUT', '/rules/in/a', 'text'))
    check('GET', await ask('GET', '/rules/in/a'))
    check('HEAD', await ask('HEAD', '/rules/in/a'))
    check('range', await ask('GET', '/rules/in/a', undefined, { range: 'bytes=1-2' }))
    check('copy', await ask('PUT', '/rules/in/b', undefined, { 'x-amz-copy-source': '/rules/in/a' }))
    const replaced = { 'x-amz-copy-source': '/rules/in/a', 'x-amz-metadata-directive': 'REPLACE' }
    check('copy onto itself', await ask('PUT', '/rules/in/a', undefined, replaced))
    const form = new FormData()
    form.set('key', 'in/form')
    form.set('file', new Blob(['text']))
    const request = new Request('http://localhost', { method: 'POST', body: form })
    const type = request.headers.get('content-type') ?? ''
    check('form', await ask('POST', '/rules', await request.text(), { 'content-type': type }))
    const upload = await begin(ask, '/rules/in/parts')
    const completion = await upload.complete()
    check('Complete', completion)
    const again = await upload.complete()
    t.equal(expiration(again), expiration(completion), 'the repeated call gets the same answer')

    const others = [await ask('PUT', '/rules/other', 'text'), await (await begin(ask, '/rules/parts')).complete()]
    others.push(await ask('PUT', '/rules/other-copy', undefined, { 'x-amz-copy-source': '/rules/in/a' }))
    for (const answer of others) t.match([answer.status, expiration(answer)], [200, undefined], 'no rule is about it')
  })

  await t.test('an upload says when a rule aborts it', async (t) => {
    const { created, target } = await begin(ask, '/rules/in/upload')
    for (const { headers } of [created, await ask('GET', target)]) {
      t.ok(isIn(2, String(headers['x-amz-abort-date'])), String(headers['x-amz-abort-date']))
      t.equal(headers['x-amz-abort-rule-id'], 'two days')
    }
    const other = await begin(ask, '/rules/upload')
    for (const { headers } of [other.created, await ask('GET', other.target)])
      t.notOk('x-amz-abort-date' in headers || 'x-amz-abort-rule-id' in headers)
  })
})

function expiration({ headers }: Answer): string | undefined {
  return headers['x-amz-expiration'] as string | undefined
}

async function begin(ask: Ask, path: string) {
  const created = await ask('POST', `${path}?uploads`)
  const target = `${path}?uploadId=${/<UploadId>([^<]*)/.exec(created.body.toString())?.[1]}`
  let first: Promise<string> | undefined
  return {
    created,
    target,
    async complete() {
      first ??= ask('PUT', `${target}&partNumber=1`, 'text').then(({ headers }) => headers.etag ?? '')
      return ask('POST', target, listOf(await first))
    },
  }
}

function listOf(etag: string): string {
  return `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${etag}</ETag></Part></CompleteMultipartUpload>`
}

t.test('what is not allowed says what is', async (t) => {
  const ask = asking(await startDealgate(t))
  await ask('PUT', '/versions')
  await markers(t, ask)
  for (const [method, target, allow] of [
    ['POST', '/versions/a', 'GET, HEAD, PUT, DELETE, OPTIONS'],
    ['DELETE', '/', 'GET, POST'],
    ['POST', '/', 'GET'],
    ['PATCH', '/versions/a', 'GET, HEAD, PUT, POST, DELETE, OPTIONS'],
  ] as const)
    t.match(await ask(method, target), { status: 405, headers: { allow } }, `${method} ${target}`)
})

async function markers(t: Test, ask: Ask): Promise<void> {
  const configuration = '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>'
  t.equal((await ask('PUT', '/versions?versioning', configuration, contentMd5(configuration))).status, 200)
  await ask('PUT', '/versions/a', 'text')
  const id = String((await ask('DELETE', '/versions/a')).headers['x-amz-version-id'])
  const list = (await ask('GET', '/versions?versions')).body.toString()
  const made = new Date(/<DeleteMarker>.*?<LastModified>([^<]*)/s.exec(list)?.[1] ?? '').toUTCString()
  const marker = { 'x-amz-delete-marker': 'true', 'x-amz-version-id': id }
  for (const method of ['GET', 'HEAD']) {
    const current = await ask(method, '/versions/a')
    t.match(current, { status: 404, headers: marker })
    t.notOk('allow' in current.headers || 'last-modified' in current.headers)
  }
  for (const [method, query] of [
    ['GET', ''],
    ['HEAD', ''],
    ['GET', 'tagging&'],
    ['GET', 'acl&'],
    ['GET', 'attributes&'],
  ] as const)
    t.match(
      await ask(method, `/versions/a?${query}versionId=${id}`, undefined, { 'x-amz-object-attributes': 'ETag' }),
      { status: 405, headers: { ...marker, allow: 'DELETE', 'last-modified': made } },
      `${method} ${query}`,
    )
}

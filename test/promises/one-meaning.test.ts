import t from 'tap'
import { type InProcess, startInProcess } from '../support/server/in-process.js'
import { modes } from '../support/server/modes.js'
import { type Answer, type Sending, send } from '../support/sign/send.js'

/** What a client sends is kept whole whatever its names, and has one meaning for everything on its way. */

const identity = { accessKeyId: 'key', secretAccessKey: 'secret-key' }

function sender({ endpoint }: InProcess) {
  const { accessKeyId: accessKey, secretAccessKey: secretKey } = identity
  const server = { endpoint, region: 'us-east-1', accessKey, secretKey }
  return (method: string, target: string, more: Partial<Sending> & { text?: string } = {}): Promise<Answer> =>
    send(server, { method, target, ...(more.text !== undefined && { body: Buffer.from(more.text) }), ...more })
}

/** Names that objects in JavaScript inherit, or that set their prototype. */
const NAMES = ['__proto__', 'constructor', 'prototype', 'tostring', 'hasownproperty']
const metadata = Object.fromEntries(NAMES.map((name) => [`x-amz-meta-${name}`, `of ${name}`]))

for (const mode of modes) {
  t.test(`${mode}: names that objects inherit are kept as any other`, async (t) => {
    const ask = sender(await startInProcess(t, mode, { identities: [identity] }))
    t.equal((await ask('PUT', '/names')).status, 200)
    const told = async (key: string) => {
      const { headers } = await ask('HEAD', `/names/${key}`)
      return Object.fromEntries(Object.keys(metadata).map((name) => [name, headers[name]]))
    }
    t.equal((await ask('PUT', '/names/a', { text: 'x', headers: metadata })).status, 200)
    t.same(await told('a'), metadata)
    t.equal((await ask('PUT', '/names/copy', { headers: { 'x-amz-copy-source': '/names/a' } })).status, 200)
    t.same(await told('copy'), metadata)
    const begun = await ask('POST', '/names/parts?uploads', { headers: metadata })
    const id = /<UploadId>(.*)<\/UploadId>/.exec(begun.body.toString())?.[1]
    const part = await ask('PUT', `/names/parts?partNumber=1&uploadId=${id}`, { text: 'x' })
    const list = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${part.headers.etag}</ETag></Part></CompleteMultipartUpload>`
    t.equal((await ask('POST', `/names/parts?uploadId=${id}`, { text: list })).status, 200)
    t.same(await told('parts'), metadata)

    for (const name of NAMES) t.equal((await ask('PUT', `/names/${name}`, { text: name })).status, 200)
    for (const name of NAMES) t.equal((await ask('GET', `/names/${name}`)).body.toString(), name)
    const tags = NAMES.map((name) => `<Tag><Key>${name}</Key><Value>of ${name}</Value></Tag>`)
    const tagging = `<Tagging><TagSet>${tags.join('')}</TagSet></Tagging>`
    t.equal((await ask('PUT', '/names/a?tagging', { text: tagging })).status, 200)
    const tagged = (await ask('GET', '/names/a?tagging')).body.toString()
    for (const tag of tags) t.ok(tagged.includes(tag), tag)
    t.match(await ask('PUT', '/constructor', {}), { status: 200 }, 'a bucket')
    t.match(await ask('GET', '/constructor'), { status: 200 })
    t.match(await ask('GET', '/constructor?lifecycle'), { code: 'NoSuchLifecycleConfiguration' })
  })
}

t.test('a policy is not taken without a condition of a name that is lost in parsing', async (t) => {
  const ask = sender(await startInProcess(t, 'full', { identities: [identity] }))
  t.equal((await ask('PUT', '/names')).status, 200)
  const text = `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::names/*",
    "Condition":{"__proto__":{"aws:SourceIp":"192.0.2.1"}}}]}`
  t.match(await ask('PUT', '/names?policy', { text }), { status: 400, code: 'MalformedPolicy' })
  t.match(await ask('GET', '/names?policy'), { code: 'NoSuchBucketPolicy' })
})

t.test('a parameter that is given twice is refused by name', async (t) => {
  const ask = sender(await startInProcess(t, 'full', { identities: [identity] }))
  t.equal((await ask('PUT', '/doubles')).status, 200)
  t.equal((await ask('PUT', '/doubles/a', { text: 'kept' })).status, 200)
  for (const [method, target, name] of [
    ['GET', '/?prefix=a&prefix=b', 'prefix'],
    ['GET', '/doubles?list-type=2&prefix=a&prefix=b', 'prefix'],
    ['GET', '/doubles?list-type=2&prefix=a&%70refix=a', 'prefix'],
    ['GET', '/doubles/a?response-content-type=a/b&response-content-type=c/d', 'response-content-type'],
    ['PUT', '/doubles/a?partNumber=1&partNumber=2&uploadId=x', 'partNumber'],
    ['GET', '/-/jobs/v1?format=xml&max-items=1&max-items=2', 'max-items'],
    ['POST', '/doubles/a?x-share=&x-share=', 'x-share'],
  ]) {
    const answer = await ask(method as string, target as string)
    t.match(answer, { status: 400, code: 'InvalidArgument' }, `${method} ${target}`)
    t.match(answer.body.toString(), `<ArgumentName>${name}</ArgumentName>`)
  }
  t.equal((await ask('GET', '/doubles/a')).body.toString(), 'kept')
  const marked = await ask('GET', '/doubles/a?x-job=nightly&x-job=weekly')
  t.equal(marked.status, 200, 'marks of users mean nothing to anybody')
})

t.test('browsers are told not to guess what an object is', async (t) => {
  const ask = sender(await startInProcess(t, 'full', { identities: [identity] }))
  t.equal((await ask('PUT', '/types')).status, 200)
  const headers = { 'content-type': 'text/plain' }
  t.equal((await ask('PUT', '/types/a', { text: '<script>1</script>', headers })).status, 200)
  const safe = { 'x-content-type-options': 'nosniff', 'content-security-policy': 'sandbox' }
  t.match(await ask('GET', '/types/a', { headers: { range: 'bytes=0-3' } }), { status: 206, headers: safe })
  t.match(await ask('GET', '/types/none'), { status: 404, headers: safe })
  const pdf = { text: '%PDF', headers: { 'content-type': 'application/pdf' } }
  t.equal((await ask('PUT', '/types/b', pdf)).status, 200)
  t.equal((await ask('GET', '/types/b')).headers['content-security-policy'], undefined)
})

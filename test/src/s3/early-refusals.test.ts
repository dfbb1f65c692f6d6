import t from 'tap'
import { contentMd5 } from '../../support/content/content.js'
import { inEachMode } from '../../support/server/dealgate.js'
import { send } from '../../support/sign/send.js'

// What CompleteMultipartUpload would refuse, and is known before, is refused before: when the upload begins, or with
// the part. Otherwise a client sends gigabytes in vain.

const UNTIL = '2090-01-01T00:00:00Z'

inEachMode(t, async (t, server) => {
  const ask = async (method: string, target: string, headers: Record<string, string> = {}, body = '') => {
    const answer = await send(server, { method, target, headers, body: Buffer.from(body) })
    return { ...answer, short: answer.status === 200 ? '200' : `${answer.status} ${answer.code}` }
  }
  const begin = async (key: string, headers: Record<string, string> = {}) => {
    const answer = await ask('POST', `/box/${key}?uploads=`, headers)
    return { ...answer, id: /<UploadId>(.*)<\/UploadId>/.exec(answer.body.toString())?.[1] ?? '' }
  }
  t.equal((await ask('PUT', '/box')).status, 200)

  t.test('a lock or a legal hold in a bucket without object lock', { skip: server.mode !== 'full' }, async (t) => {
    const missing = 'Bucket is missing ObjectLockConfiguration'
    for (const [what, lock] of [
      ['hold', { 'x-amz-object-lock-legal-hold': 'ON' }],
      ['no hold', { 'x-amz-object-lock-legal-hold': 'OFF' }],
      ['retention', { 'x-amz-object-lock-mode': 'GOVERNANCE', 'x-amz-object-lock-retain-until-date': UNTIL }],
    ] as const) {
      const begun = await begin('k', lock)
      t.same([begun.short, begun.message], ['400 InvalidRequest', missing], `upload, ${what}`)
      const put = await ask('PUT', '/box/k', { ...lock, ...contentMd5('x') }, 'x')
      t.same([put.short, put.message], ['400 InvalidRequest', missing], `PUT, ${what}`)
      t.equal((await ask('PUT', '/box/from', {}, 'x')).short, '200')
      const copy = await ask('PUT', '/box/k', { ...lock, 'x-amz-copy-source': '/box/from' })
      t.same([copy.short, copy.message], ['400 InvalidRequest', missing], `copy, ${what}`)
    }
    t.equal((await ask('HEAD', '/box/k')).status, 404)
    t.notMatch((await ask('GET', '/box?uploads=')).body.toString(), '<Upload>', 'no upload has begun')
    t.equal((await ask('PUT', '/vault', { 'x-amz-bucket-object-lock-enabled': 'true' })).short, '200')
    const held = await ask('POST', '/vault/k?uploads=', { 'x-amz-object-lock-legal-hold': 'ON' })
    t.equal(held.short, '200', 'with object lock, it begins')
  })

  t.test('a part without a checksum, for a composite checksum', async (t) => {
    const algorithm = { 'x-amz-checksum-algorithm': 'CRC32' }
    const types: Record<string, string>[] = [{}, { 'x-amz-checksum-type': 'COMPOSITE' }]
    for (const type of types) {
      const { id } = await begin('sums', { ...algorithm, ...type })
      const part = (headers: Record<string, string>) =>
        ask('PUT', `/box/sums?partNumber=1&uploadId=${id}`, headers, 'abc')
      const without = await part({})
      t.equal(without.short, '400 InvalidRequest')
      t.equal(
        without.message,
        'Checksum Type mismatch occurred, expected checksum Type: crc32, actual checksum Type: null',
      )
      t.equal((await part({ 'x-amz-checksum-sha1': 'qZk+NkcGgWq6PiVxeFDCbJzQ2J0=' })).short, '400 InvalidRequest')
      t.equal((await part({ 'x-amz-checksum-crc32': 'NSRBwg==' })).short, '200')
    }
    const { id } = await begin('sums', { ...algorithm, 'x-amz-checksum-type': 'FULL_OBJECT' })
    t.equal((await ask('PUT', `/box/sums?partNumber=1&uploadId=${id}`, {}, 'abc')).short, '200', 'FULL_OBJECT')
  })

  t.test('bytes for a key that can hold none', async (t) => {
    const { id } = await begin('folder/')
    const part = (body: string) => ask('PUT', `/box/folder/?partNumber=1&uploadId=${id}`, {}, body)
    t.equal((await part('x')).short, server.mode === 'full' ? '200' : '400 InvalidArgument')
    t.equal((await part('')).short, '200')
    const put = await ask('PUT', '/box/other/', {}, 'x')
    t.equal(put.short, server.mode === 'full' ? '200' : '400 InvalidArgument', 'one byte')
    if (server.mode !== 'full') t.match(put.message, /stores only empty objects/)
  })

  t.test('user metadata where none is kept', async (t) => {
    const { id } = await begin('meta', { 'x-amz-meta-a': 'b' })
    t.equal((await ask('PUT', '/box/meta', { 'x-amz-meta-a': 'b' }, 'x')).short, '200')
    const part = `/box/meta?partNumber=1&uploadId=${id}`
    const list =
      '<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"a"</ETag></Part></CompleteMultipartUpload>'
    for (const [method, target, headers, body] of [
      ['PUT', part, {}, 'x'],
      ['PUT', part, { 'x-amz-copy-source': '/box/meta' }, ''],
      ['POST', `/box/meta?uploadId=${id}`, {}, list],
    ] as const) {
      const answer = await ask(method, target, { ...headers, 'x-amz-meta-colour': 'red' }, body)
      t.equal(answer.short, '400 InvalidArgument', `${method} ${target}`)
      t.match(answer.body.toString(), '<ArgumentName>x-amz-meta-colour</ArgumentName>')
    }
    t.notMatch((await ask('GET', `/box/meta?uploadId=${id}`)).body.toString(), '<Part>', 'no part is there')
    for (const [target, headers, body] of [
      ['/box/meta?tagging=', {}, '<Tagging><TagSet/></Tagging>'],
      ['/box/meta?acl=', { 'x-amz-acl': 'private' }, ''],
    ] as const) {
      const answer = await ask('PUT', target, { ...headers, 'x-amz-meta-colour': 'red' }, body)
      t.equal(answer.short, '200', `${target}: clients send what they are told to add to all requests`)
    }
    t.notMatch((await ask('HEAD', '/box/meta')).headers, { 'x-amz-meta-colour': 'red' })
  })

  t.test('a list with a part that is not there, and one that is too small', async (t) => {
    const { id } = await begin('small')
    const { headers } = await ask('PUT', `/box/small?partNumber=1&uploadId=${id}`, {}, 'x')
    const complete = (second: string) => {
      const one = `<Part><PartNumber>1</PartNumber><ETag>${headers.etag}</ETag></Part>`
      return ask(
        'POST',
        `/box/small?uploadId=${id}`,
        {},
        `<CompleteMultipartUpload>${one}${second}</CompleteMultipartUpload>`,
      )
    }
    const absent = await complete('<Part><PartNumber>2</PartNumber><ETag>"a"</ETag></Part>')
    t.match(absent.body.toString(), '<Code>InvalidPart</Code>')
    const second = await ask('PUT', `/box/small?partNumber=2&uploadId=${id}`, {}, 'y')
    const small = await complete(`<Part><PartNumber>2</PartNumber><ETag>${second.headers.etag}</ETag></Part>`)
    t.match(small.body.toString(), '<Code>EntityTooSmall</Code>')
  })
})

import { createHash } from 'node:crypto'
import t from 'tap'
import {
  checksumAlgorithms,
  checksumHeader,
  createChecksum,
  prepareChecksum,
} from '../../../src/common/checksums/checksums.js'
import { bytes, MiB } from '../../support/content/content.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { type Sending, send, targetOf } from '../../support/sign/send.js'

for (const algorithm of checksumAlgorithms) await prepareChecksum(algorithm)

const B = 'checksum-algorithms'
/** Values of other implementations: OpenSSL, and the xxHash library as its README and its command line print them. */
const OF_ABC = {
  SHA512: createHash('sha512').update('abc').digest('base64'),
  MD5: createHash('md5').update('abc').digest('base64'),
  XXHASH64: Buffer.from('44bc2cf5ad770999', 'hex').toString('base64'),
  XXHASH3: Buffer.from('78af5f94892f3950', 'hex').toString('base64'),
  XXHASH128: Buffer.from('06b05ab6733a618578af5f94892f3950', 'hex').toString('base64'),
}
const NEW = Object.keys(OF_ABC) as (keyof typeof OF_ABC)[]

// Requests are read, and checksums kept, in the same way with each gateway.
t.test('full', async (t) => {
  const server = await startDealgate(t)
  const ask = (method: string, target: string, more: Partial<Sending> = {}) => send(server, { method, target, ...more })
  const enabled = { headers: { 'x-amz-checksum-mode': 'ENABLED' } }
  t.equal((await ask('PUT', `/${B}`)).status, 200)
  const abc = Buffer.from('abc')
  const large = bytes('large', 5 * MiB)

  for (const name of NEW) {
    const header = checksumHeader(name)
    const target = targetOf(B, name)

    await t.test(`${name} in a header`, async (t) => {
      const sent = { body: abc, headers: { [header]: OF_ABC[name], 'x-amz-sdk-checksum-algorithm': name } }
      t.match(await ask('PUT', target, sent), { status: 200, headers: { [header]: OF_ABC[name] } })
      const wrong = sumOf(name, Buffer.from('abd'))
      t.match(await ask('PUT', target, { body: abc, headers: { [header]: wrong } }), { status: 400, code: 'BadDigest' })
      const short = { body: abc, headers: { [header]: 'AAAA' } }
      t.match(await ask('PUT', target, short), { status: 400, code: 'InvalidRequest' })
      for (const method of ['GET', 'HEAD']) {
        const told = { [header]: OF_ABC[name], 'x-amz-checksum-type': 'FULL_OBJECT' }
        t.match((await ask(method, target, enabled)).headers, told)
      }
      const attributes = await ask('GET', `${target}?attributes`, {
        headers: { 'x-amz-object-attributes': 'Checksum' },
      })
      t.match(attributes.body.toString(), `<Checksum${name}>${OF_ABC[name]}</Checksum${name}>`)
    })

    await t.test(`${name} of parts is composite`, async (t) => {
      const key = targetOf(B, `parts-${name}`)
      const begin = (type?: string) =>
        ask('POST', `${key}?uploads`, {
          headers: { 'x-amz-checksum-algorithm': name, ...(type && { 'x-amz-checksum-type': type }) },
        })
      t.equal((await begin('FULL_OBJECT')).code, 'InvalidRequest', 'it does not follow from those of the parts')
      const begun = await begin()
      t.match(begun.headers, { 'x-amz-checksum-algorithm': name, 'x-amz-checksum-type': 'COMPOSITE' })
      const id = /<UploadId>(.*?)</.exec(begun.body.toString())?.[1] ?? ''
      let list = ''
      const sums: Buffer[] = []
      for (const [i, body] of [large, abc].entries()) {
        const value = sumOf(name, body)
        sums.push(Buffer.from(value, 'base64'))
        const part = `${key}?partNumber=${i + 1}&uploadId=${id}`
        // One says it, the other leaves it to the server.
        const sent = await ask('PUT', part, { body, headers: i === 0 ? { [header]: value } : {} })
        t.equal(sent.headers[header], value)
        list += `<Part><PartNumber>${i + 1}</PartNumber><ETag>${sent.headers.etag}</ETag><Checksum${name}>${value}</Checksum${name}></Part>`
      }
      t.match((await ask('GET', `${key}?uploadId=${id}`)).body.toString(), `<ChecksumAlgorithm>${name}<`)
      const value = `${sumOf(name, Buffer.concat(sums))}-2`
      const document = (parts: string) => Buffer.from(`<CompleteMultipartUpload>${parts}</CompleteMultipartUpload>`)
      const bare = document(list.replace(/<Checksum.*?<\/Checksum\w+>/g, ''))
      t.equal((await ask('POST', `${key}?uploadId=${id}`, { body: bare })).code, 'InvalidRequest')
      const done = await ask('POST', `${key}?uploadId=${id}`, { body: document(list), headers: { [header]: value } })
      t.match(done.body.toString(), `<Checksum${name}>${value}</Checksum${name}><ChecksumType>COMPOSITE</ChecksumType>`)
      t.match((await ask('HEAD', key, enabled)).headers, { [header]: value, 'x-amz-checksum-type': 'COMPOSITE' })
      const asked = { headers: { 'x-amz-object-attributes': 'Checksum,ObjectParts' } }
      const told = (await ask('GET', `${key}?attributes`, asked)).body.toString()
      const bareValue = value.replace(/-2$/, '')
      t.match(told, `<Checksum><Checksum${name}>${bareValue}</Checksum${name}><ChecksumType>COMPOSITE</ChecksumType>`)
      t.match(told, `<PartNumber>2</PartNumber><Size>3</Size><Checksum${name}>${OF_ABC[name]}</Checksum${name}>`)

      const copied = await ask('PUT', targetOf(B, 'copy'), {
        headers: { 'x-amz-copy-source': `/${B}/parts-${name}`, 'x-amz-checksum-algorithm': name },
      })
      const whole = sumOf(name, Buffer.concat([large, abc]))
      t.match(copied.body.toString(), `<Checksum${name}>${whole}</Checksum${name}>`)
    })
  }

  await t.test('listings tell every algorithm', async (t) => {
    for (const name of checksumAlgorithms) {
      const headers = { [checksumHeader(name)]: sumOf(name, abc) }
      t.equal((await ask('PUT', targetOf(B, `each/${name}`), { body: abc, headers })).status, 200)
    }
    const listed = (await ask('GET', `/${B}?list-type=2&prefix=each%2F`)).body.toString()
    for (const name of checksumAlgorithms) {
      const entry = new RegExp(`<Key>each/${name}</Key>.*?</Contents>`).exec(listed)?.[0]
      t.match(entry, `<ChecksumAlgorithm>${name}</ChecksumAlgorithm><ChecksumType>FULL_OBJECT</ChecksumType>`)
    }
  })
})

function sumOf(name: (typeof checksumAlgorithms)[number], data: Buffer): string {
  const checksum = createChecksum(name)
  checksum.update(data)
  return checksum.digest()
}

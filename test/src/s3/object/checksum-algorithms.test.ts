import { createHash } from 'node:crypto'
import t from 'tap'
import {
  checksumAlgorithms,
  checksumHeader,
  createChecksum,
  prepareChecksum,
} from '../../../../common/checksums/checksums.js'
import { startDealgate } from '../../../support/server/dealgate.js'
import { type Sending, send, targetOf } from '../../../support/sign/send.js'

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

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { CarReader, CarWriter } from '@ipld/car'
import { Encrypter } from 'age-encryption'
import t from 'tap'
import { pack, packContent } from '../../services/network/pack/index.js'
import { newIdentity, recipientOf } from '../../src/objects/encryption/age-header.js'
import { linesOf } from '../../src/objects/encryption/key-file.js'
import { bytes } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { isInstalled, runAny } from '../support/programs/run.js'
import { CLI, piped, runCli } from '../support/server/cli.js'
import { listen } from '../support/server/listen.js'

const CHUNK = 64 * 1024

const folder = temporaryFolder(t)
const keys = join(folder, 'own.keys')
const at = (name: string) => join(folder, name)
const identity = await newIdentity()
writeFileSync(keys, await linesOf(identity))

async function aged(content: Buffer): Promise<Buffer> {
  const encrypter = new Encrypter()
  encrypter.addRecipient(await recipientOf(identity))
  return Buffer.from(await encrypter.encrypt(content))
}

async function* whole(content: Buffer) {
  yield content
}

const content = bytes('letter', 40 * CHUNK + 5)
const file = await aged(content)
writeFileSync(at('letter.age'), file)
await packContent(whole(file), at('letter.car'))
const other = bytes('other', 3 * CHUNK)
async function* files() {
  yield { path: ['a', 'first.bin'], size: other.length, content: () => whole(other) }
  yield { path: ['a', 'letter.txt'], size: file.length, content: () => whole(file) }
  yield { path: ['last'], size: other.length, content: () => whole(other) }
}
await pack(files(), { target: at('bucket.car'), onFile: () => {} })

const server = createServer(({ url = '/' }, response) => {
  const path = at(url.slice(1).split('?')[0] ?? '')
  response.statusCode = existsSync(path) ? 200 : 404
  response.end(existsSync(path) ? readFileSync(path) : 'no')
})
const base = await listen(server, t)

const decrypt = (...args: string[]) => runAny(process.execPath, [...CLI, 'decrypt', '--encryption-keys', keys, ...args])
const fromInput = (input: Buffer, ...args: string[]) =>
  runAny(process.execPath, [...CLI, 'decrypt', '--encryption-keys', keys, '-', ...args], { input })

t.test('an age file and a CAR, from a file, a URL and standard input', async (t) => {
  for (const [name, more] of [
    ['letter.age', []],
    ['letter.car', []],
    ['bucket.car', ['--path', 'a/letter.txt']],
  ] as const) {
    for (const [from, result] of [
      ['a file', await decrypt(at(name), ...more)],
      ['a URL', await decrypt(`${base}/${name}?signature=x`, ...more)],
      ['standard input', await fromInput(readFileSync(at(name)), ...more)],
    ] as const) {
      t.equal(result.code, 0, `${name} of ${from}: ${result.stderr}`)
      t.ok(result.stdout.equals(content))
    }
  }
  const output = at('opened')
  t.equal((await decrypt(at('letter.car'), '--output', output)).code, 0)
  t.ok(readFileSync(output).equals(content))
  t.match((await decrypt(at('letter.car'), '--output', output)).stderr, /exists already/)
  t.ok((await decrypt(at('bucket.car'), '--path', 'a/letter.txt', '--unpack')).stdout.equals(file))
})

t.test('every length of a last chunk, where the length is not known before', async (t) => {
  for (const size of [0, 1, CHUNK, CHUNK + 1]) {
    const { code, stdout, stderr } = await fromInput(await aged(bytes('size', size)))
    t.equal(code, 0, stderr)
    t.ok(stdout.equals(bytes('size', size)), `${size} bytes`)
  }
})

t.test('what is damaged is never written', async (t) => {
  const output = at('damaged.out')
  const header = file.indexOf('\n--- ') + 1
  const first = file.indexOf('\n', header) + 1 + 16
  const altered = (position: number) => {
    const bad = Buffer.from(file)
    bad[position] = (bad[position] ?? 0) ^ 1
    return bad
  }
  const rest = file.subarray(first + 2 * (CHUNK + 16))
  const chunk = (i: number) => file.subarray(first + i * (CHUNK + 16), first + (i + 1) * (CHUNK + 16))
  for (const [what, bad, verified] of [
    ['a byte of the header', altered(header - 5), 0],
    ['a byte of chunk 20', altered(first + 20 * (CHUNK + 16)), 20],
    ['the last byte', altered(file.length - 1), 40],
    ['cut after chunk 10', file.subarray(0, first + 10 * (CHUNK + 16)), 9],
    ['cut within chunk 10', file.subarray(0, first + 10 * (CHUNK + 16) + 700), 10],
    ['no payload', file.subarray(0, first), 0],
    ['exchanged', Buffer.concat([file.subarray(0, first), chunk(1), chunk(0), rest]), 0],
    ['more behind the end', Buffer.concat([file, file.subarray(0, 100)]), 40],
  ] as const) {
    const { code, stdout, stderr } = await fromInput(bad)
    t.not(code, 0, what)
    t.ok(stdout.equals(content.subarray(0, verified * CHUNK)), `${what}: only verified chunks were written`)
    t.notMatch(stderr, /at .*\.js|SECRET/, 'no stack and no secret')
    writeFileSync(at('bad'), bad)
    t.not((await decrypt(at('bad'), '--output', output)).code, 0)
    t.notOk(existsSync(output), 'no file is left')
  }
})

t.test('a CAR that is damaged, cut or not in order', async (t) => {
  const car = readFileSync(at('letter.car'))
  const bad = Buffer.from(car)
  bad[car.length - 10] = (bad[car.length - 10] ?? 0) ^ 1
  writeFileSync(at('bad.car'), bad)
  writeFileSync(at('cut.car'), car.subarray(0, car.length - 1000))
  for (const [name, why] of [
    ['bad.car', /damaged/],
    ['cut.car', /truncated|incomplete|damaged/],
  ] as const) {
    for (const result of [await decrypt(at(name), '--unpack'), await fromInput(readFileSync(at(name)), '--unpack')]) {
      t.not(result.code, 0)
      t.match(result.stderr, why)
      t.ok(file.subarray(0, result.stdout.length).equals(result.stdout) && result.stdout.length < file.length)
    }
  }
  const reader = await CarReader.fromBytes(car)
  const { writer, out } = CarWriter.create(await reader.getRoots())
  const turned = buffer(out)
  const blocks = []
  for await (const block of reader.blocks()) blocks.push(block)
  for (const block of blocks.reverse()) await writer.put(block)
  await writer.close()
  writeFileSync(at('turned.car'), await turned)
  t.ok((await decrypt(at('turned.car'))).stdout.equals(content), 'a file may have its blocks in any order')
  t.match((await fromInput(await turned)).stderr, /not in order. Store it in a file/)
})

t.test('what cannot be opened is named', async (t) => {
  writeFileSync(at('plain'), 'plain text')
  writeFileSync(at('other.keys'), await linesOf(await newIdentity()))
  for (const [result, why] of [
    [await decrypt(at('plain')), /plain is no encrypted object/],
    [await decrypt(at('absent')), /Cannot read .*absent/],
    [await decrypt(folder), /it is a folder/],
    [await decrypt(`${base}/absent?signature=secret`), /\/absent has no such file: its answer is HTTP 404/],
    [await decrypt('http://127.0.0.1:1/x'), /cannot be reached/],
    [await decrypt(at('bucket.car')), /Name the file with --path: it has a, last/],
    [await decrypt(at('bucket.car'), '--path', 'a/absent'), /no link "absent"/],
    [await decrypt(at('letter.age'), '--path', 'x'), /is no CAR/],
    [await decrypt(at('letter.car'), '--encryption-keys', at('other.keys')), /No key of .*other.keys opens/],
  ] as const) {
    t.equal(result.code, 1)
    t.match(result.stderr, why)
    t.notMatch(result.stderr, /signature|at .*\.js/)
    t.equal(result.stdout.length, 0)
  }
})

t.test('the printed command opens it with the program age', { skip: !isInstalled('age') && 'no age' }, async (t) => {
  for (const [from, more] of [
    [at('letter.age'), []],
    [`${base}/bucket.car?a=1&b=2`, ['--path', 'a/letter.txt']],
  ] as const) {
    const { stdout } = await runCli(['decrypt', from, '--encryption-keys', keys, '--print-age-command', ...more])
    const line = stdout.replace('dealgate ', `${process.execPath} ${CLI.join(' ')} `)
    t.match(line, / -d -i /)
    const opened = await runAny('sh', ['-c', line])
    t.ok(opened.stdout.equals(content), `${stdout}${opened.stderr}`)
  }
  const { stdout } = await piped('', ['decrypt', '-', '--encryption-keys', keys, '--print-age-command'])
  t.equal(stdout, `age -d -i ${keys}\n`)
})

import { lookup } from 'node:dns/promises'
import { networkInterfaces } from 'node:os'
import t from 'tap'
import { blocks, lookupOf, mayFetchFrom, requireAddress } from '../../../../src/services/platform/daemon/addresses.js'

const NONE = { allowed: [], own: [] }
const ALL = { allowed: blocks('0.0.0.0/0', '::/0'), own: [] }
const URL_OF_CAR = new URL('http://cars.example:9300/a.car')
const here = new Set(Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => address) ?? []))

t.test('addresses from which a CAR may come', (t) => {
  const yes = ['93.184.216.34', '2606:2800:220:1::1', '::ffff:93.184.216.34']
  const no = [
    '169.254.169.254',
    '::ffff:169.254.169.254',
    '0.0.0.0',
    '::',
    '::7f00:1',
    // As a look-up of its name writes the same address.
    '::127.0.0.1',
    'fe80::1',
    'fe80::1%eth0',
    '100.100.100.200',
  ]
  const byOption = [
    '127.0.0.1',
    '127.8.9.10',
    '::1',
    '::ffff:127.0.0.1',
    '10.255.0.1',
    '::ffff:10.255.0.1',
    'fd12:3456::1',
    '192.168.254.1',
    '172.31.254.1',
    '64:ff9b::a00:1',
    '64:ff9b::10.0.0.1',
    '::ffff:0:a00:1',
  ]
  for (const address of yes) t.ok(mayFetchFrom(address, URL_OF_CAR, NONE), address)
  for (const address of no) t.notOk(mayFetchFrom(address, URL_OF_CAR, ALL), address)
  for (const address of byOption) {
    t.notOk(mayFetchFrom(address, URL_OF_CAR, NONE), address)
    t.ok(mayFetchFrom(address, URL_OF_CAR, ALL), `${address}, if it is allowed`)
  }
  for (const address of here) t.notOk(mayFetchFrom(address, URL_OF_CAR, NONE), `${address}, which is of this machine`)
  t.throws(() => blocks('10.0.0.0/33'), RangeError)
  t.end()
})

t.test('servers of this machine that hand out CARs', (t) => {
  const may = (address: string, url: string, ...own: string[]) =>
    mayFetchFrom(address, new URL(url), { allowed: [], own: own.map((each) => new URL(each)) })
  t.ok(may('127.0.0.1', 'http://127.0.0.1:9300/a', 'http://127.0.0.1:9300'))
  t.ok(may('127.0.0.1', 'http://localhost:9300/a', 'http://127.0.0.1:9300'), 'by another name for the same address')
  t.ok(may('127.0.0.1', 'http://127.0.0.1:9300/a', 'http://0.0.0.0:9300'), 'which listens on all addresses')
  t.ok(may('::1', 'http://[::1]:9300/a', 'http://[::]:9300'))
  t.ok(may('127.0.0.1', 'https://s3.example/a', 'https://s3.example'), 'by the name that others use')
  t.notOk(may('127.0.0.1', 'http://127.0.0.1:9301/a', 'http://127.0.0.1:9300'), 'another port')
  t.notOk(may('127.0.0.2', 'http://127.0.0.2:9300/a', 'http://127.0.0.1:9300'), 'another address')
  t.notOk(may('127.0.0.1', 'http://evil.example/a', 'https://s3.example'), 'another name')
  t.notOk(may('127.0.0.1', 'http://s3.example/a', 'https://s3.example'), 'another port of that name')
  t.end()
})

t.test('literal addresses in a URL', (t) => {
  for (const host of ['169.254.169.254', '[fe80::1]', '[::ffff:a9fe:a9fe]', '0xa9fea9fe', '127.0.0.1', '127.1'])
    t.throws(() => requireAddress(new URL(`http://${host}/`), NONE), /no CAR may come/, host)
  t.doesNotThrow(() => requireAddress(new URL('http://127.0.0.1/'), ALL))
  t.doesNotThrow(() => requireAddress(URL_OF_CAR, NONE), 'a name is looked up')
  t.end()
})

t.test('names are looked up', async (t) => {
  const [known] = await lookup('localhost', { all: true })
  const url = new URL('http://localhost:9300/')
  const found = await new Promise((resolve, reject) => {
    lookupOf(url, ALL)('localhost', { all: true }, (error, addresses) => (error ? reject(error) : resolve(addresses)))
  })
  t.match(found, [known ?? {}])
  const one = await new Promise((resolve, reject) => {
    lookupOf(url, ALL)('localhost', {}, (error, address) => (error ? reject(error) : resolve(address)))
  })
  t.equal(one, known?.address)
  for (const name of ['localhost', '169.254.169.254']) {
    const refused = new Promise((resolve) => lookupOf(url, NONE)(name, { all: true }, resolve))
    t.match(await refused, { message: /no CAR may come/ }, name)
  }
})

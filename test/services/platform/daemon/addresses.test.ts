import { lookup } from 'node:dns/promises'
import { networkInterfaces } from 'node:os'
import t from 'tap'
import { blocks, lookupOf, mayFetchFrom, requireAddress } from '../../../../src/services/platform/daemon/addresses.js'

t.test('addresses from which a CAR may come', (t) => {
  const yes = ['127.0.0.1', '::1', '93.184.216.34', '2606:2800:220:1::1', '::ffff:93.184.216.34']
  const no = [
    '169.254.169.254',
    '::ffff:169.254.169.254',
    '0.0.0.0',
    '::',
    'fe80::1',
    'fe80::1%eth0',
    '100.100.100.200',
  ]
  const byOption = [
    '10.255.0.1',
    '::ffff:10.255.0.1',
    'fd12:3456::1',
    '192.168.254.1',
    '172.31.254.1',
    '64:ff9b::a00:1',
  ]
  const own = new Set(Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => address) ?? []))
  const allowed = blocks('0.0.0.0/0', '::/0')
  for (const address of yes) t.ok(mayFetchFrom(address, []), address)
  for (const address of no) t.notOk(mayFetchFrom(address, allowed), address)
  for (const address of byOption) {
    t.equal(mayFetchFrom(address, []), own.has(address), address)
    t.ok(mayFetchFrom(address, allowed), `${address}, if it is allowed`)
  }
  for (const address of own) if (!/^(169\.254|fe80)/.test(address)) t.ok(mayFetchFrom(address, []), address)
  t.throws(() => blocks('10.0.0.0/33'), RangeError)
  t.end()
})

t.test('literal addresses in a URL', (t) => {
  for (const host of ['169.254.169.254', '[fe80::1]', '[::ffff:a9fe:a9fe]']) {
    t.throws(() => requireAddress(new URL(`http://${host}/`).hostname, []), /no CAR may come/, host)
  }
  t.throws(() => requireAddress(new URL('http://0xa9fea9fe/').hostname, []), 'as a number')
  t.doesNotThrow(() => requireAddress('127.0.0.1', []))
  t.doesNotThrow(() => requireAddress('a.example', []), 'a name is looked up')
  t.end()
})

t.test('names are looked up', async (t) => {
  const [known] = await lookup('localhost', { all: true })
  const found = await new Promise((resolve, reject) => {
    lookupOf([])('localhost', { all: true }, (error, addresses) => (error ? reject(error) : resolve(addresses)))
  })
  t.match(found, [known ?? {}])
  const one = await new Promise((resolve, reject) => {
    lookupOf([])('localhost', {}, (error, address) => (error ? reject(error) : resolve(address)))
  })
  t.equal(one, known?.address)
  const refused = new Promise((resolve) => lookupOf([])('169.254.169.254', { all: true }, resolve))
  t.match(await refused, { message: /no CAR may come/ })
})

import { existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CID } from 'multiformats/cid'
import t, { type Test } from 'tap'
import type { EmbeddedNetwork } from '../../../services/network/embedded/embedded-network.js'
import {
  addressOfKey,
  addressOfMiner,
  addressText,
  formatFil,
  parseFil,
  priceOfPiece,
  tokenBytes,
} from '../../../services/network/fil.js'
import type { MadeDeal, PackedCar } from '../../../services/network/network.js'
import { signProposal } from '../../../services/network/proposal.js'
import { Wallet } from '../../../services/network/wallet.js'
import { temporaryFolder } from '../../support/content/folders.js'
import {
  type Asked,
  ask,
  bytesOf,
  cars,
  content,
  open,
  packedFile,
  provider,
  staged,
  terms,
} from './embedded-network.js'
import { signerOf, verifyProposal } from './verify-proposal.js'

const offline = { ...provider, offlineDealAvailable: true }
const other = { ...offline, minerId: 't02001' }
const providers = [offline, other]

interface Scene {
  readonly folder: string
  readonly network: EmbeddedNetwork
  readonly asked: Asked
  readonly car: PackedCar
}

async function scene(t: Test): Promise<Scene> {
  const folder = temporaryFolder(t)
  const network = await open(t, join(folder, 'network'), { providers })
  const asked = ask('reference', { 'a/one': content('one', 3000), two: content('two', 5000) })
  const car = await network.pack({ ...asked, target: join(folder, 'deal.car') })
  return { folder, network, asked, car }
}

function propose({ network, car }: Scene, reference = 'reference', more: object = {}): Promise<MadeDeal> {
  return network.offline.propose({ reference, terms: { ...terms, ...more }, car })
}

t.test('an offline deal is the same deal as an online one', async (t) => {
  const s = await scene(t)
  const { network, asked, car, folder } = s
  t.ok(existsSync(car.file))
  t.same(staged(join(folder, 'network')), [])
  const made = await propose(s)
  t.match(made, { dataCid: car.dataCid, pieceCid: car.pieceCid, pieceSize: car.pieceSize, carSize: car.carSize, terms })
  t.same(await propose(s), made, 'a repeated reference is the same proposal')
  t.same(await network.find('reference'), made)
  const waiting = { state: 'StorageDealCheckForAcceptance', message: 'Provider state: StorageDealWaitingForData' }
  await network.control.advance(100)
  t.match(await network.status(made.dealCid), waiting, 'it waits for as long as the data take')
  t.same(await network.dealTotals(), [], 'a deal that waits is none yet')
  t.match(await network.offline.waitingFor(offline.minerId, car.pieceCid), [{ dealCid: made.dealCid }])
  t.same(await network.offline.waitingFor(other.minerId, car.pieceCid), [])
  t.ok(await network.offline.knows(offline.minerId, made.dealCid))
  t.notOk(await network.offline.knows(other.minerId, made.dealCid))
  await t.rejects(bytesOf(network, made.dealCid, packedFile(asked, 'two')), { code: 'NotRetrievable' })

  const inspected = await network.offline.inspect(car.file)
  t.same(inspected, car, 'a provider sees in the file what was packed')
  const [active, again] = await Promise.all([
    network.offline.import(made.dealCid, inspected),
    network.offline.import(made.dealCid, inspected),
  ])
  t.equal(active, network.epoch() + 2 + 3 + 5)
  t.equal(again, active)
  t.equal(cars(join(folder, 'network')).length, 1)
  t.ok(existsSync(car.file), 'the file stays where it is')
  t.same(await network.offline.waitingFor(offline.minerId, car.pieceCid), [])
  const online = await network.deal(ask('online', { 'a/one': content('one', 3000), two: content('two', 5000) }))
  t.equal(online.dataCid, made.dataCid)
  for (const epochs of [2, 3, 5]) {
    await network.control.advance(epochs)
    const { state, message } = await network.status(online.dealCid)
    t.match(await network.status(made.dealCid), { state, message })
  }
  t.equal((await network.status(made.dealCid)).state, 'StorageDealActive')
  t.ok((await bytesOf(network, made.dealCid, packedFile(asked, 'a/one'))).equals(content('one', 3000)))
  t.match(await network.dealTotals(), [{ deals: 2, held: true, price: 10n ** 18n }])
  await network.stop()
  const later = await open(t, join(folder, 'network'), { providers })
  t.equal((await later.status(made.dealCid)).state, 'StorageDealActive')
  t.equal(await later.offline.import(made.dealCid, car), active, 'a repeated import does nothing')
})
t.test('a provider imports nothing but the data of the deal, and in time', async (t) => {
  const s = await scene(t)
  const { network, car, folder } = s
  const { dealCid, startEpoch } = await propose(s)
  const more = ask('more')
  const wrong = await network.pack({ ...more, target: join(folder, 'other.car') })
  await t.rejects(network.offline.import(dealCid, wrong), { code: 'DataRefused', message: /not the piece/ })
  for (const [fault, code] of [['offline', 'ProviderOffline'] as const, ['rejects', 'DataRefused'] as const]) {
    await network.control.setFault(offline.minerId, fault, true)
    await t.rejects(network.offline.import(dealCid, car), { code })
    await network.control.setFault(offline.minerId, fault, false)
  }
  t.same(cars(join(folder, 'network')), [])
  await network.control.advance(startEpoch - network.epoch() - 9)
  await t.rejects(network.offline.import(dealCid, car), { code: 'DataRefused', message: /too late/ })
  await network.control.advance(9)
  t.match(await network.status(dealCid), { state: 'StorageDealError', message: /had no data/ })
  t.same(await network.offline.waitingFor(offline.minerId, car.pieceCid), [])
})

t.test('only a whole CAR with one root is one', async (t) => {
  const { network, car, folder } = await scene(t)
  const file = join(folder, 'file')
  const refused = { code: 'DataRefused' }
  for (const bytes of ['', 'no CAR', readFileSync(car.file).subarray(0, 60)]) {
    writeFileSync(file, bytes)
    await t.rejects(network.offline.inspect(file), refused)
  }
  truncateSync(car.file, car.carSize - 1)
  await t.rejects(network.offline.inspect(car.file), refused)
})

t.test('addresses are Filecoin’s', async (t) => {
  // The published vector of go-address.
  const publicKey = Buffer.from(
    '049402fac37e64' +
      '32a416a3a0ca5426b5185ab3b24f6134efa25ce487c82d2e4e13bf452511e0d2245421f8613bc10d72fa216666a96c3bc13920d3ff233fd0bc05',
    'hex',
  )
  t.equal(addressText(addressOfKey(publicKey)), 't15ihq5ibzwki2b4ep2f46avlkrqzhpqgtga7pdrq')
  t.same([...addressOfMiner('t01024')], [0, 0x80, 0x08])
  for (const minerId of ['t00', 't0127', 't0128', 't09223372036854775807'])
    t.equal(addressText(addressOfMiner(minerId)), minerId)
  for (const wrong of ['', 't001', 'f01000', 't0-1', 't09223372036854775808'])
    t.throws(() => addressOfMiner(wrong), RangeError, JSON.stringify(wrong))
})

t.test('amounts', async (t) => {
  t.equal(parseFil('0'), 0n)
  t.equal(parseFil('0.000005'), 5_000_000_000_000n)
  t.equal(parseFil('12.000000000000000001'), 12_000_000_000_000_000_001n)
  for (const wrong of ['', '.5', '-1', '1e-6', '0.0000000000000000001', '12345678901'])
    t.equal(parseFil(wrong), undefined, JSON.stringify(wrong))
  t.equal(formatFil(12_000_000_000_000_000_001n), '12.000000000000000001')
  t.equal(formatFil(10n ** 19n), '10')
  t.equal(priceOfPiece(500_000_000n, 2 ** 35), 16_000_000_000n)
  t.equal(priceOfPiece(500_000_000n, 128), 60n, 'rounded up')
  t.same([...tokenBytes(0n)], [])
  t.same([...tokenBytes(256n)], [0, 1, 0])
})

t.test('the wallet is made once and kept privately', async (t) => {
  const file = join(temporaryFolder(t), 'wallet.json')
  const wallet = Wallet.open(file)
  t.match(wallet.address, /^t1[a-z2-7]{39}$/)
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.equal(Wallet.open(file).address, wallet.address)
  const message = Buffer.from('a message')
  t.same(signerOf(message, wallet.sign(message)), wallet.addressBytes)
  const { secretKey } = JSON.parse(readFileSync(file, 'utf8'))
  for (const text of [`{"secretKey":"${secretKey}"`, '{}', `{"type":"secp256k1","secretKey":"${'0'.repeat(64)}"}`]) {
    writeFileSync(file, text)
    try {
      Wallet.open(file)
      t.fail('opened')
    } catch (error) {
      t.match(error, { message: /wallet\.json is not a wallet/ })
      t.notMatch(String((error as Error).stack), secretKey, 'the key stays where it is')
    }
  }
  t.throws(() => Wallet.open(join(file, 'below-a-file')), { code: 'ENOTDIR' })
})

t.test('a proposal is the block that Filecoin would have', async (t) => {
  const wallet = Wallet.open(join(temporaryFolder(t), 'wallet.json'))
  const terms = {
    pieceCid: 'baga6ea4seaqao7s73y24kcutaosvacpdjgfe5pw76ooefnyqw4ynr3d2y6x2mpq',
    pieceSize: 34359738368,
    verifiedDeal: true,
    provider: 't01024',
    label: 'bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku',
    startEpoch: 6_500_000,
    endEpoch: 7_018_400,
    storagePricePerEpoch: 5_000_000_000_000n,
    providerCollateral: 0n,
    clientCollateral: 1n,
  }
  const { dealCid, block } = signProposal(terms, wallet)
  t.match(dealCid, /^bafyrei/)
  t.same(verifyProposal(block, dealCid), { ...terms, client: wallet.address })
  t.not(signProposal(terms, wallet).dealCid, dealCid, 'the same terms again are another proposal')

  // Byte for byte what the definition of the type says, up to the signature.
  const piece = CID.parse(terms.pieceCid).bytes
  const expected = Buffer.concat([
    Buffer.from([0x82, 0x8b, 0xd8, 0x2a, 0x58, piece.length + 1, 0]),
    piece,
    Buffer.from('1b0000000800000000f555', 'hex'),
    wallet.addressBytes,
    Buffer.from('43008008783b', 'hex'),
    Buffer.from(terms.label),
    Buffer.from('1a00632ea01a006b17a0', 'hex'),
    Buffer.from('47' + '00048c27395000' + '40' + '420001' + '584201', 'hex'),
  ])
  t.equal(Buffer.from(block.subarray(0, expected.length)).toString('hex'), expected.toString('hex'))
  t.equal(block.length, expected.length + 65)
})

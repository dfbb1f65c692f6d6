import t from 'tap'
import { catalogue } from '../../../services/network/embedded/catalogue.js'
import { ask, terms } from '../network/embedded-network.js'
import { startScene } from './platform-client.js'

const ids = (json: { data: { miner: { miner_id: string }[] } }) => json.data.miner.map(({ miner_id }) => miner_id)

t.test('the providers of the network, member by member', async (t) => {
  const { call, network } = await startScene(t)
  const { status, json } = await call('GET', '/miners')
  t.equal(status, 200)
  t.equal(json.data.total_items, catalogue.length)
  for (const miner of json.data.miner) t.match(miner.update_time_str, /^\d{10}$/, 'Unix seconds')
  const known = catalogue.map(({ minerId }) => minerId)
  t.same(ids(json), known)
  const one = await call('GET', '/miners/t01004')
  t.equal(one.status, 200)
  const miner = {
    location: 'South America',
    price: '0.000002',
    verified_price: '0.0000002',
    min_piece_size: '128B',
    max_piece_size: '512MiB',
    offline_deal_available: false,
    score: 78,
    status: 'Active',
    contact_info: 'contato@pampas-storage.example',
  }
  t.match(one.json, { status: 'success', data: { miner } })
  await network.control.setFault('t01004', 'offline', true)
  t.equal((await call('GET', '/miners/t01004')).json.data.miner.status, 'Offline')
  t.match(await call('GET', '/miners/t09999'), { status: 404, json: { status: 'fail', message: 'Miner Not found' } })
})

t.test('filters, sorting and pages', async (t) => {
  const { call, network, restart } = await startScene(t)
  await network.control.setFault('t01002', 'offline', true)
  const all = catalogue.map(({ minerId }) => minerId)
  const byPrice = ['t01007', 't01003', 't01002', 't01000', 't01005', 't01001', 't01006', 't01004']
  const rows: readonly [string, readonly string[]][] = [
    ['', all],
    ['location=europe', ['t01001', 't01007']],
    ['location=North%20America', ['t01002']],
    ['offline_deal_available=1', ['t01000', 't01001', 't01003', 't01005']],
    ['offline_deal_available=0', ['t01002', 't01004', 't01006', 't01007']],
    ['status=Offline', ['t01002']],
    ['status=active', all.filter((id) => id !== 't01002')],
    ['sort_by=price', byPrice],
    ['sort_by=price&order=desc', byPrice.toReversed()],
    ['sort_by=score&order=descending&limit=3', ['t01000', 't01001', 't01003']],
    ['sort_by=verified_price&limit=3', ['t01002', 't01001', 't01007']],
    ['sort_by=location&limit=2', ['t01005', 't01003']],
    ['sort_by=status&order=desc&limit=1', ['t01002']],
    ['sort_by=update_time_str', all],
    ['order=desc', all.toReversed()],
    ['limit=3&offset=1', all.slice(1, 4)],
    ['limit=3&offset=6', all.slice(6)],
    ['limit=1000&offset=1000000000', []],
    ['location=Europe&offline_deal_available=1&status=Active&sort_by=score&limit=1', ['t01001']],
  ]
  for (const [query, expected] of rows) t.same(ids((await call('GET', `/miners?${query}`)).json), expected, query)
  t.equal((await call('GET', '/miners?location=Europe&limit=1')).json.data.total_items, 2, 'before the page is cut')
  const pages = await restart({ offsets: 'pages' })
  t.same(ids((await pages.call('GET', '/miners?limit=3&offset=1')).json), all.slice(3, 6), 'the other habit')
})
t.test('the owner of a provider says how it bids', async (t) => {
  const scene = await startScene(t)
  const { call, signIn } = scene
  const token = await signIn()
  const form = (fields: Record<string, string>) => ({ token, body: new URLSearchParams(fields) })
  const all = {
    miner_fid: 't01001',
    bid_mode: '0',
    expected_sealing_time: '1920',
    start_epoch: '2880',
    auto_bid_task_per_day: '20',
    location: 'Asia',
    offline_deal_available: 'false',
  }
  const numbers = { bid_mode: 0, expected_sealing_time: 1920, start_epoch: 2880, auto_bid_task_per_day: 20 }
  const config = { ...all, ...numbers, id: 1001, offline_deal_available: false }
  const changed = await call('POST', '/miner/info', form(all))
  t.equal(changed.status, 200)
  t.same(changed.json.data, config)
  const shown = { data: { miner: { location: 'Asia', offline_deal_available: false } } }
  t.match((await call('GET', '/miners/t01001')).json, shown)

  const refused = [
    [404, /^Miner Not found$/, { ...all, miner_fid: 't09999' }],
    [400, /bid_mode must be/, { ...all, bid_mode: '2' }],
    [400, /expected_sealing_time must be/, { ...all, expected_sealing_time: '1555201' }],
    [400, /auto_bid_task_per_day must be/, { ...all, auto_bid_task_per_day: 'many' }],
    [400, /location must be/, { ...all, location: 'Atlantis' }],
    [400, /offline_deal_available must be/, { ...all, offline_deal_available: 'yes' }],
  ] as const
  for (const [status, message, fields] of refused)
    t.match(await call('POST', '/miner/info', form(fields)), { status, json: { status: 'fail', message } })
  const stranger = await scene.addUser('stranger@example.com')
  const foreign = await call('POST', '/miner/info', { ...form({ ...all, location: 'Africa' }), token: stranger })
  t.match(foreign, { status: 403, json: { message: /is not yours/ } })

  const again = await scene.restart()
  t.match((await again.call('GET', '/miners/t01001')).json, shown)
  const kept = await again.call('POST', '/miner/info', form({ miner_fid: 't01001' }))
  t.same(kept.json.data, config, 'absent fields stay, also over a restart')
})

t.test('what programs of providers call: their configuration, heartbeats and asks', async (t) => {
  const scene = await startScene(t)
  const { call, signIn } = scene
  const token = await signIn()
  const stranger = await scene.addUser('stranger@example.com')
  const usual = { id: 1001, miner_fid: 't01001', bid_mode: 1, expected_sealing_time: 2880, start_epoch: 20_160 }
  t.match(await call('GET', '/miner/info/t01001'), { status: 200, json: { status: 'success', data: usual } })
  t.equal((await call('GET', '/miner/info/t09999')).status, 404)

  const beat = (miner_id: string, by?: string) =>
    call('POST', '/heartbeat', { body: new URLSearchParams({ miner_id }), token: by })
  const alive = await beat('t01001', token)
  t.equal(alive.status, 200)
  t.notMatch(JSON.stringify(alive.json), /fail/i, 'programs take that word for a failure')
  const seen = (await call('GET', '/miners/t01001')).json.data.miner
  t.equal(seen.update_time_str, alive.json.data.update_time_str)
  t.match((await call('GET', '/miner/info/t01001')).json.data, usual, 'its settings stay')
  t.equal((await beat('t01001')).status, 401)
  t.equal((await beat('t01001', stranger)).status, 403)
  t.equal((await beat('t09999', token)).status, 404)

  const ask = (body: object, by = token, id = 't01001') => call('PUT', `/miners/${id}/status`, { body, token: by })
  // Texts of Python's decimals, and of a provider's node.
  const wanted = { price: '5E-7', verified_price: '0.00000002', min_piece_size: '1 KiB', max_piece_size: '64 GiB' }
  const shown = { ...wanted, price: '0.0000005', min_piece_size: '1KiB', max_piece_size: '64GiB' }
  t.match(await ask(wanted), { status: 200, json: { status: 'success', data: { miner: shown } } })
  const nothing = { price: 'None', verified_price: '', min_piece_size: null, max_piece_size: null }
  t.match((await ask(nothing)).json, { data: { miner: shown } }, 'absent fields stay')
  const refused = [
    [400, /price must be a decimal/, { price: 'cheap' }],
    [400, /max_piece_size must be a whole number/, { max_piece_size: '9000000000 PiB' }],
    [400, /smallest piece must not be larger/, { ...wanted, min_piece_size: '128 GiB' }],
  ] as const
  for (const [status, message, body] of refused)
    t.match(await ask({ verified_price: '1', ...body }), { status, json: { status: 'fail', message } }, String(message))
  t.match(await ask(wanted, stranger), { status: 403, json: { message: /is not yours/ } })
  const again = await scene.restart()
  t.match((await again.call('GET', '/miners/t01001')).json, { data: { miner: shown } })
})

t.test('price statistics of providers and deals', async (t) => {
  const { call, network } = await startScene(t)
  const empty = await call('GET', '/stats/storage?wallet_address=0x1')
  t.equal(empty.status, 200)
  t.match(empty.json, { status: 'success', code: 200 })
  t.same(empty.json.data, {
    average_cost_push_message: '0 FIL',
    average_data_cost_sealing_1TB: '0 FIL',
    average_gas_cost_sealing_1TB: '0 FIL',
    average_min_piece_size: '136.13 MiB',
    // The mean of eight prices, 0.00000075625 FIL per GiB and epoch, times 1051200 epochs and 10^9 / 2^30.
    average_price_per_GB_per_year: '0.740373507142066955 FIL',
    average_verified_price_per_GB_per_year: '0.067831150123051234 FIL',
    // Without deals, what providers offer for regular ones: the same mean times 1051200.
    historical_average_price_regular: '0.79497 FIL/GiB/year',
    historical_average_price_verified: '0.79497 FIL/GiB/year',
  })
  const at = (minerId: string, price: string, verifiedDeal = false) => ({
    terms: { ...terms, minerId, price, verifiedDeal },
  })
  await network.deal(ask('one', undefined, at('t01000', '0.5')))
  await network.deal(ask('two', undefined, at('t01005', '1.5')))
  await network.deal(ask('three', undefined, at('t01000', '0.25', true)))
  const { data } = (await call('GET', '/stats/storage')).json
  // Pieces of 4096 bytes: 1 FIL per epoch for one on average, 1051200 epochs a year, 2^18 of them in a GiB.
  t.equal(data.historical_average_price_regular, `${1_051_200 * 2 ** 18} FIL/GiB/year`)
  t.equal(data.historical_average_price_verified, `${262_800 * 2 ** 18} FIL/GiB/year`)
  const [first, second] = (await call('GET', '/miners')).json.data.miner
  t.same([first.adjusted_power, second.adjusted_power], ['8KiB', '0B'])
})

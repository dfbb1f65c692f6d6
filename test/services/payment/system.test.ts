import { arch, platform } from 'node:os'
import t from 'tap'
import { check, type Shape } from '../platform/tasks/shapes.js'
import { startPaymentScene } from './payment-client.js'

const success = (data: Shape): Shape => ({ status: 'success', code: 'integer', data })

const config: Readonly<Record<'a' | 'b', Shape>> = {
  a: {
    status: 'success',
    data: {
      chain_name: 'string',
      payment_contract_address: 'string',
      dao_contract_address: 'string',
      dex_address: 'string',
      mint_contract_address: 'string',
      payment_recipient_address: 'string',
      stable_address: 'string',
      stable_wrapped_pool_contract: 'string',
      dao_threshold: 'integer',
      storage_coin_price: 'integer',
      gas_limit: 'integer',
      lock_time: 'integer',
      pay_multiply_factor: 'number',
    },
  },
  b: success({
    CHAIN_NAME: 'string',
    GAS_LIMIT: 'integer',
    LOCK_TIME: 'integer',
    MINT_CONTRACT_ADDRESS: 'string',
    PAYMENT_CONTRACT_ADDRESS: 'string',
    PAYMENT_RECIPIENT_ADDRESS: 'string',
    STABLE_ADDRESS: 'string',
    PAY_MULTIPLY_FACTOR: 'number',
  }),
}

const host: Shape = {
  version: 'string',
  operating_system: 'string',
  architecture: 'string',
  cpu_number: 'integer',
  current_unix_nano: 'integer',
}

const prices = {
  average_cost_push_message: 'string',
  average_data_cost_sealing_1TB: 'string',
  average_gas_cost_sealing_1TB: 'string',
  average_min_piece_size: 'string',
  average_price_per_GB_per_year: 'string',
  average_verified_price_per_GB_per_year: 'string',
}

const historical = { historical_average_price_regular: 'string', historical_average_price_verified: 'string' }

for (const variant of ['a', 'b'] as const) {
  t.test(`variant ${variant}: what the service says of itself`, async (t) => {
    const scene = await startPaymentScene(t, { variant })
    const data = async (path: string, shape: Shape) => {
      const { status, json } = await scene.call('GET', path)
      t.equal(status, 200)
      check(t, json, shape)
      if (json.code !== undefined) t.equal(json.code, path.includes('/price/') ? '200' : 200)
      return json.data
    }
    const known = await data('/api/v1/common/system/params', config[variant])
    const addresses = Object.entries<string>(known).filter(([name]) => /address|contract/i.test(name))
    t.ok(addresses.length >= 4)
    for (const [name, address] of addresses) t.match(address, /^0x[0-9a-fA-F]{40}$/, name)
    const machine = await data(
      '/api/v1/common/host/info',
      variant === 'a' ? { status: 'success', data: host } : success(host),
    )
    t.match(machine, { operating_system: platform(), architecture: arch() })
    t.ok(Math.abs(machine.current_unix_nano / 1e6 - Date.now()) < 60_000, 'nanoseconds since 1970')
    t.equal(
      await data('/api/v1/billing/price/storagecoin', { status: 'success', code: 'string', data: 'integer' }),
      known.storage_coin_price ?? 500_000_000,
    )
    const average = await data('/stats/storage', success(variant === 'a' ? { ...prices, ...historical } : prices))
    for (const [name, text] of Object.entries<string>(average)) t.match(text, /^\d+(\.\d+)? \S+$/, name)
    const again = await scene.restart()
    t.same((await again.call('GET', '/api/v1/common/system/params')).json.data, known, 'the addresses stay')
  })
}

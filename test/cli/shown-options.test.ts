import t from 'tap'
import { type Config, type Option, optionNames, options, readConfig } from '../../cli/config/config.js'
import { shownOptions } from '../../cli/config/shown-options.js'

const defaults = readConfig({ env: {} })

t.test('no value of a secret option is shown', async (t) => {
  const secrets = optionNames.filter((name) => (options[name] as Option).secret)
  t.ok(secrets.length > 8, String(secrets))
  for (const name of secrets) {
    const repeated = Array.isArray(defaults[name])
    const value = repeated ? ['marker-one', 'marker-two'] : 'marker-one'
    const shown = shownOptions({ ...defaults, [name]: value } as Config)
    t.notMatch(JSON.stringify(shown), 'marker', name)
    t.match(
      shown.find(({ secret, isSet }) => secret && isSet),
      { value: undefined, isDefault: false },
      name,
    )
  }
})

t.test('no part of an address but scheme and host is shown', async (t) => {
  for (const name of optionNames) {
    if ((options[name] as Option).secret) continue
    const address = 'wss://marker:marker@host.example:8443/marker?marker=marker#marker'
    const value = Array.isArray(defaults[name]) ? [address, `name=${address}`] : `name=${address}`
    const shown = shownOptions({ ...defaults, [name]: value } as Config)
    t.notMatch(JSON.stringify(shown), 'marker', name)
  }
  const shown = new Map(shownOptions(defaults).map((option) => [option.name, option]))
  t.equal(shown.size, optionNames.length)
  t.match(shown.get('--port'), { value: '9000', isDefault: true, live: false })
  t.match(shown.get('--log-level'), { value: '"info"', live: true, secret: false })
  const own = shownOptions({ ...defaults, gatewayUrl: 'http://gateway.example:1234' })
  t.equal(own.find(({ name }) => name === '--gateway-url')?.value, '"http://gateway.example:1234"')
})

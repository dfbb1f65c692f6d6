import { joinWebhooks, parseWebhook, parseWebhookSecret } from '../../plugins/notifications/webhooks.js'
import { flagOf } from './option-names.js'
import type { Config, OptionName } from './options.js'

/**
 * Checks a relation between options and returns its problems. `given` is true for options that the user has set;
 * `value` returns the effective value.
 */
type Rule = (
  given: (name: OptionName) => boolean,
  value: <Name extends OptionName>(name: Name) => Config[Name],
) => readonly string[]

const PAYMENT_CHAIN = [
  'paymentChainUrl',
  'paymentChainId',
  'paymentChainContract',
  'paymentChainToken',
  'paymentChainRecipient',
  'paymentChainAbi',
  'paymentChainConfirmations',
  'paymentChainStartBlock',
] as const

const PAYMENT_ONLY = [
  'paymentHost',
  'paymentPort',
  'paymentPublicUrl',
  'paymentIpfsUrl',
  'paymentDenylist',
  'paymentFreeGib',
  'paymentWords',
  'paymentMintContract',
  'paymentVariant',
  ...PAYMENT_CHAIN,
] as const

const CHAIN_NEEDS = ['paymentChainId', 'paymentChainContract', 'paymentChainToken', 'paymentChainRecipient'] as const

const EMBEDDED_ONLY = [
  'gatewayHost',
  'gatewayPort',
  'gatewayQuirks',
  'gatewayPublicUrl',
  'gatewayCarGib',
  'bodies',
  'bodiesCredentialsFile',
  'database',
  'servicesMaxConnections',
  'networkEpochSeconds',
  'networkControl',
  'kuboApi',
  'platformHost',
  'platformPort',
  'platformSmtp',
  'platformMailFrom',
  'platformDaemon',
  'platformCarNetworks',
  'platformApiKey',
  'platformAccessToken',
  ...PAYMENT_ONLY,
] as const

export const rules: readonly Rule[] = [
  (given) => together(given, 'accessKey', 'secretKey'),
  (given) => together(given, 'gatewayAccessKey', 'gatewaySecretKey'),
  (_given, value) => {
    const { length } = value('tlsCert')
    if (length === value('tlsKey').length) return []
    return [`${flagOf('tlsCert')} and ${flagOf('tlsKey')} must be given equally often: each certificate has its key`]
  },
  (given) => together(given, 'gatewayCert', 'gatewayKey'),
  (given, value) => {
    if (value('gatewayUrl')?.startsWith('https:')) return []
    return (['gatewayCa', 'gatewayCert'] as const)
      .filter(given)
      .map((name) => `${flagOf(name)} needs an https:// address in ${flagOf('gatewayUrl')}`)
  },
  (given) => {
    if (!given('sealingKey') || !given('sealingKeyFile')) return []
    return [`${flagOf('sealingKey')} and ${flagOf('sealingKeyFile')} name two keys: leave one out`]
  },
  (given) => {
    if (!given('gatewayUrl') || given('gatewayAccessKey') || given('gatewaySecretKey')) return []
    return [`${flagOf('gatewayUrl')} needs ${flagOf('gatewayAccessKey')} and ${flagOf('gatewaySecretKey')}`]
  },
  (given) => {
    if (!given('gatewayUrl')) return []
    return EMBEDDED_ONLY.filter(given).map(
      (name) => `${flagOf(name)} is for the embedded gateway: leave it out, or leave out ${flagOf('gatewayUrl')}`,
    )
  },
  (given, value) => {
    if (value('consolePort') !== 'off') return []
    return (['consoleUrl', 'consoleEndpoint'] as const)
      .filter(given)
      .map((name) => `${flagOf(name)} is for the console: leave it out, or give ${flagOf('consolePort')} a port`)
  },
  (given) => {
    if (!given('oidcIssuer')) {
      return (['oidcClientId', 'oidcAudience', 'oidcRole', 'oidcScope'] as const)
        .filter(given)
        .map((name) => `${flagOf(name)} needs ${flagOf('oidcIssuer')}`)
    }
    if (given('oidcClientId') || given('oidcAudience')) return []
    return [`${flagOf('oidcIssuer')} needs ${flagOf('oidcClientId')}, or ${flagOf('oidcAudience')}`]
  },
  (given, value) => {
    if (!given('oidcClientId') || given('consoleUrl')) return []
    if (value('consolePort') === 'off')
      return [`${flagOf('oidcClientId')} is for the console: give ${flagOf('oidcAudience')} instead`]
    // The issuer sends users back to one address, which no request may choose.
    if (/^(?:localhost|127\..*|::1)$/.test(value('host'))) return []
    return [`${flagOf('oidcClientId')} needs ${flagOf('consoleUrl')}, the address to which the issuer sends users back`]
  },
  (_given, value) => {
    const scopes = value('oidcScope').split(' ')
    return scopes.includes('openid') ? [] : [`${flagOf('oidcScope')} must have the word openid`]
  },
  (_given, value) => {
    const port = value('consolePort')
    if (port === 'off' || port === 0 || port !== value('port')) return []
    return [`${flagOf('port')} and ${flagOf('consolePort')} are both ${port}: give one of them another port`]
  },
  (given) => together(given, 'platformApiKey', 'platformAccessToken'),
  (given) => {
    if (!given('platformApiKey') || given('platformUrl')) return []
    return [`${flagOf('platformApiKey')} is for another task platform: give ${flagOf('platformUrl')}, too`]
  },
  (given) => {
    if (!given('platformUrl')) return []
    return (['platformHost', 'platformPort', 'platformSmtp', 'platformMailFrom', 'platformDaemon'] as const)
      .filter(given)
      .map(
        (name) =>
          `${flagOf(name)} is for the embedded task platform: leave it out, or leave out ${flagOf('platformUrl')}`,
      )
  },
  (given) => {
    if (!given('paymentUrl')) return []
    return PAYMENT_ONLY.filter(given).map(
      (name) =>
        `${flagOf(name)} is for the embedded storage payment API: leave it out, or leave out ${flagOf('paymentUrl')}`,
    )
  },
  (given) => {
    if (given('paymentChainUrl')) {
      return CHAIN_NEEDS.filter((name) => !given(name)).map(
        (name) => `${flagOf('paymentChainUrl')} needs ${flagOf(name)}`,
      )
    }
    return PAYMENT_CHAIN.filter(given).map((name) => `${flagOf(name)} needs ${flagOf('paymentChainUrl')}`)
  },
  (given, value) => {
    if (value('accessLogFormat') !== 's3' || given('accessLogFile')) return []
    return [`${flagOf('accessLogFormat')} s3 needs ${flagOf('accessLogFile')}`]
  },
  (given, value) => {
    if (!given('kuboApi') || !value('networkControl')) return []
    return [
      `${flagOf('networkControl')} is for the embedded storage network: leave it out, or leave out ${flagOf('kuboApi')}`,
    ]
  },
  (given, value) => {
    if (!given('webhook') || value('plugins')?.length !== 0) return []
    return [`${flagOf('webhook')} needs the plugin notifications, which a server without plugins does not run`]
  },
  (_given, value) => {
    try {
      joinWebhooks(value('webhook').map(parseWebhook), value('webhookSecret').map(parseWebhookSecret))
      return []
    } catch (error) {
      return [`${flagOf('webhook')}: ${(error as Error).message}`]
    }
  },
]

function together(given: (name: OptionName) => boolean, one: OptionName, other: OptionName): string[] {
  if (given(one) === given(other)) return []
  const [present, absent] = given(one) ? [one, other] : [other, one]
  return [`${flagOf(present)} needs ${flagOf(absent)} beside it`]
}

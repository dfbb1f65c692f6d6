import { S3Error } from '../../../common/errors/s3-error.js'
import { uriEncode } from '../../../common/sigv4.js'
import {
  childText,
  document,
  element,
  notStrict,
  parseXml,
  requireChildren,
  requiredText,
  within,
  type XmlNode,
} from '../../../common/xml.js'
import { xml } from '../../http/reply.js'
import { bucketSetting } from './bucket-setting.js'

declare module '../../api/settings.js' {
  interface SettingTypes {
    website: WebsiteConfiguration
  }
}

type Protocol = 'http' | 'https'

/** https://docs.aws.amazon.com/AmazonS3/latest/API/API_WebsiteConfiguration.html */
export interface WebsiteConfiguration {
  /** In place of everything else. */
  readonly redirectAll?: { readonly host: string; readonly protocol?: Protocol }
  /** Name of the object that answers for a folder. */
  readonly index?: string
  /** Key of the object that answers errors of clients. */
  readonly error?: string
  readonly rules?: readonly RoutingRule[]
}

interface RoutingRule {
  readonly prefix?: string
  /** HTTP status of the error; absent: before the object is looked up. */
  readonly status?: number
  readonly protocol?: Protocol
  readonly host?: string
  readonly replacePrefix?: string
  readonly replaceKey?: string
  /** HTTP status of the redirect. */
  readonly code?: number
}

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/how-to-page-redirect.html */
const MAX_RULES = 50

/**
 * Reads a `<WebsiteConfiguration>`.
 * @throws S3Error MalformedXML, InvalidArgument, InvalidRequest
 */
async function readWebsite(bytes: Buffer): Promise<WebsiteConfiguration> {
  const root = await parseXml(bytes, 'WebsiteConfiguration')
  requireChildren(root, 'WebsiteConfiguration', {
    once: ['IndexDocument', 'ErrorDocument', 'RedirectAllRequestsTo', 'RoutingRules'],
  })
  const all = root.children.get('RedirectAllRequestsTo')?.[0]
  if (all) {
    if (root.children.size > 1) throw notStrict('RedirectAllRequestsTo excludes everything else.')
    requireChildren(all, 'RedirectAllRequestsTo', { once: ['HostName', 'Protocol'] })
    return { redirectAll: { host: hostOf(requiredText(all, 'RedirectAllRequestsTo', 'HostName')), ...protocolOf(all) } }
  }
  const index = textIn(root, 'IndexDocument', 'Suffix')
  if (index === undefined)
    throw invalid('A value for IndexDocument Suffix must be provided if RedirectAllRequestsTo is empty', '')
  if (index === '' || index.includes('/')) throw invalid('The IndexDocument Suffix is not well formed', index)
  const error = textIn(root, 'ErrorDocument', 'Key')
  if (error === '') throw invalid('The ErrorDocument Key is not well formed', error)
  const list = root.children.get('RoutingRules')?.[0]
  if (!list) return { index, ...(error !== undefined && { error }) }
  requireChildren(list, 'RoutingRules', { many: ['RoutingRule'] })
  const rules = (list.children.get('RoutingRule') ?? []).map((rule) => within(rule, readRule))
  if (rules.length > MAX_RULES)
    throw new S3Error('InvalidRequest', { message: `A website configuration has at most ${MAX_RULES} routing rules.` })
  return { index, ...(error !== undefined && { error }), ...(rules.length > 0 && { rules }) }
}

function textIn(root: XmlNode, name: string, child: string): string | undefined {
  const node = root.children.get(name)?.[0]
  if (!node) return undefined
  requireChildren(node, name, { once: [child] })
  return requiredText(node, name, child)
}

function readRule(node: XmlNode): RoutingRule {
  requireChildren(node, 'RoutingRule', { once: ['Condition', 'Redirect'] })
  const condition = node.children.get('Condition')?.[0]
  const redirect = node.children.get('Redirect')?.[0]
  if (!redirect) throw notStrict('RoutingRule needs Redirect.')
  requireChildren(redirect, 'Redirect', {
    once: ['Protocol', 'HostName', 'ReplaceKeyPrefixWith', 'ReplaceKeyWith', 'HttpRedirectCode'],
  })
  const replacePrefix = childText(redirect, 'ReplaceKeyPrefixWith')
  const replaceKey = childText(redirect, 'ReplaceKeyWith')
  if (replacePrefix !== undefined && replaceKey !== undefined)
    throw new S3Error('InvalidRequest', { message: 'You can only define ReplaceKeyPrefix or ReplaceKey but not both.' })
  if (redirect.children.size === 0) throw notStrict('Redirect needs an element.')
  const host = childText(redirect, 'HostName')
  const code = childText(redirect, 'HttpRedirectCode')
  return {
    ...(condition && readCondition(condition)),
    ...protocolOf(redirect),
    ...(host !== undefined && { host: hostOf(host) }),
    ...(replacePrefix !== undefined && { replacePrefix }),
    ...(replaceKey !== undefined && { replaceKey }),
    ...(code !== undefined && { code: statusOf(code, /^3(?!00)\d\d$/, 'HTTP redirect code', '3XX except 300') }),
  }
}

function readCondition(condition: XmlNode): Pick<RoutingRule, 'prefix' | 'status'> {
  requireChildren(condition, 'Condition', { once: ['KeyPrefixEquals', 'HttpErrorCodeReturnedEquals'] })
  const prefix = childText(condition, 'KeyPrefixEquals')
  const status = childText(condition, 'HttpErrorCodeReturnedEquals')
  if (prefix === undefined && status === undefined)
    throw new S3Error('InvalidRequest', {
      message: 'Condition cannot be empty. To redirect all requests, leave it out.',
    })
  return {
    ...(prefix !== undefined && { prefix }),
    ...(status !== undefined && { status: statusOf(status, /^[45]\d\d$/, 'HTTP error code', '4XX or 5XX') }),
  }
}

function statusOf(text: string, valid: RegExp, what: string, codes: string): number {
  if (valid.test(text)) return Number(text)
  throw new S3Error('InvalidRequest', {
    message: `The provided ${what} (${text.slice(0, 20)}) is not valid. Valid codes are ${codes}.`,
  })
}

function protocolOf(node: XmlNode): { protocol?: Protocol } {
  const protocol = childText(node, 'Protocol')
  if (protocol === undefined) return {}
  if (protocol === 'http' || protocol === 'https') return { protocol }
  throw new S3Error('InvalidRequest', { message: 'Invalid protocol, protocol can be http or https.' })
}

/** A name or an address, with a port: it becomes a part of a URL. */
function hostOf(text: string): string {
  if (/^(?:[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?(?:\/[A-Za-z0-9._~/-]*)?$/.test(text)) return text
  throw invalid('The HostName is not well formed', text)
}

function invalid(message: string, value: string): S3Error {
  return new S3Error('InvalidArgument', { message, fields: { ArgumentValue: value.slice(0, 200) } })
}

function websiteDocument({ redirectAll, index, error, rules = [] }: WebsiteConfiguration): string {
  const all = redirectAll && element('HostName', redirectAll.host) + element('Protocol', redirectAll.protocol)
  const list = rules.map(ruleElement).join('')
  return document(
    'WebsiteConfiguration',
    [
      all === undefined ? '' : `<RedirectAllRequestsTo>${all}</RedirectAllRequestsTo>`,
      index === undefined ? '' : `<IndexDocument>${element('Suffix', index)}</IndexDocument>`,
      error === undefined ? '' : `<ErrorDocument>${element('Key', error)}</ErrorDocument>`,
      list === '' ? '' : `<RoutingRules>${list}</RoutingRules>`,
    ].join(''),
  )
}

function ruleElement({ prefix, status, ...redirect }: RoutingRule): string {
  const condition = element('KeyPrefixEquals', prefix) + element('HttpErrorCodeReturnedEquals', status)
  return [
    '<RoutingRule>',
    condition === '' ? '' : `<Condition>${condition}</Condition>`,
    '<Redirect>',
    element('Protocol', redirect.protocol),
    element('HostName', redirect.host),
    element('ReplaceKeyPrefixWith', redirect.replacePrefix),
    element('ReplaceKeyWith', redirect.replaceKey),
    element('HttpRedirectCode', redirect.code),
    '</Redirect></RoutingRule>',
  ].join('')
}

export const bucketWebsite = bucketSetting({
  name: 'BucketWebsite',
  subresource: 'website',
  action: 'BucketWebsite',
  get: {
    async run({ bucket }, { settings }) {
      const website = await settings.confirmed(bucket, 'website')
      return website ? xml(websiteDocument(website)) : 'NoSuchWebsiteConfiguration'
    },
  },
  put: {
    partly: 'NotImplemented without a port for websites (website.md).',
    async run(bytes, { bucket }, context) {
      if (!context.server.websites)
        throw new S3Error('NotImplemented', {
          message: 'Buckets are not served as websites here: that needs a port of its own (--website-port).',
        })
      await context.settings.set(bucket, 'website', await readWebsite(bytes))
      return undefined
    },
  },
  remove: {
    action: 'DeleteBucketWebsite',
    run: (bucket, { settings }) => settings.delete(bucket, 'website'),
  },
})

export interface Redirect {
  readonly status: number
  readonly location: string
}

/** How the client reached the website. */
export interface WebHost {
  readonly secure: boolean
  /** With the port. */
  readonly host: string
}

const MOVED = 301

/** The redirect of all requests to the website; undefined for none. */
export function redirectOfAll(website: WebsiteConfiguration, target: string, at: WebHost): Redirect | undefined {
  const { redirectAll } = website
  if (!redirectAll) return undefined
  const { host, protocol = at.secure ? 'https' : 'http' } = redirectAll
  return { status: MOVED, location: `${protocol}://${host}${target}` }
}

/**
 * The redirect by the first routing rule that applies; undefined for none.
 * @param status of an error; undefined before the object is looked up
 */
export function redirectByRule(
  { rules = [] }: WebsiteConfiguration,
  key: string,
  status: number | undefined,
  at: WebHost,
): Redirect | undefined {
  const rule = rules.find((one) => one.status === status && key.startsWith(one.prefix ?? ''))
  if (!rule) return undefined
  const { host = at.host, protocol = at.secure ? 'https' : 'http', code = MOVED } = rule
  return { status: code, location: `${protocol}://${host}/${uriEncode(keyBy(rule, key), true)}` }
}

function keyBy({ prefix = '', replacePrefix, replaceKey }: RoutingRule, key: string): string {
  if (replaceKey !== undefined) return replaceKey
  return replacePrefix === undefined ? key : `${replacePrefix}${key.slice(prefix.length)}`
}

/** The bucket whose website has this host: `photos` of `photos.web.example`, or a bucket that is named as the host. */
export function bucketOfHost(host: string, domains: readonly string[]): string {
  const name = host.replace(/:\d*$/, '').toLowerCase()
  const domain = domains.find((one) => name.endsWith(`.${one.toLowerCase()}`))
  return domain === undefined ? name : name.slice(0, -domain.length - 1)
}

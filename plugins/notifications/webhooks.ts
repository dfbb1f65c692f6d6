/** A destination of notifications. The operator of the server declares it; the configuration of a bucket names it. */
export interface Webhook {
  /** 1 to 64 letters, digits, `-` and `_`. */
  readonly name: string
  /** http or https. User and password in it are sent as basic authentication. */
  readonly url: string
  /** Key of the signature in `x-dealgate-signature`; absent: messages are not signed. */
  readonly secret?: string
}

const ARN = 'arn:dealgate:webhook:::'
/** Names of webhooks. */
export const NAME = /^[A-Za-z0-9_-]{1,64}$/

export function arnOfWebhook(name: string): string {
  return ARN + name
}

/** Returns the webhook of an ARN; undefined for any other text. */
export function webhookOfArn(arn: string): string | undefined {
  const name = arn.startsWith(ARN) ? arn.slice(ARN.length) : ''
  return NAME.test(name) ? name : undefined
}

/**
 * Parses `name=url`. Throws Error with a message that follows "is not valid:" and does not show the URL, which may hold
 * secrets.
 */
export function parseWebhook(text: string): Webhook {
  const [name, url] = splitNamed(text)
  const problem = problemOfUrl(url)
  if (problem !== undefined) throw new Error(`after "=" ${problem}`)
  return { name, url }
}

/** Returns why notifications cannot be sent to this address; undefined if they can. Does not show it. */
export function problemOfUrl(url: string): string | undefined {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) return 'there must be an http or https URL'
  return isEncoded(new URL(url)) ? undefined : 'user and password must be percent-encoded'
}

function isEncoded({ username, password }: URL): boolean {
  try {
    decodeURIComponent(username + password)
    return true
  } catch {
    return false
  }
}

/** Parses `name=secret`. Throws like parseWebhook. */
export function parseWebhookSecret(text: string): { readonly name: string; readonly secret: string } {
  const [name, secret] = splitNamed(text)
  if (secret.length < 8) throw new Error('after "=" there must be a secret of 8 characters or more')
  return { name, secret }
}

/** Joins webhooks and secrets by name. Throws Error for a duplicate name, and for a secret without a webhook. */
export function joinWebhooks(
  webhooks: readonly Webhook[],
  secrets: readonly { readonly name: string; readonly secret: string }[] = [],
): ReadonlyMap<string, Webhook> {
  const joined = new Map<string, Webhook>()
  for (const webhook of webhooks) {
    if (joined.has(webhook.name)) throw new Error(`the webhook "${webhook.name}" is declared twice`)
    joined.set(webhook.name, webhook)
  }
  for (const { name, secret } of secrets) {
    const webhook = joined.get(name)
    if (!webhook) throw new Error(`there is a secret for the webhook "${name}", which is not declared`)
    if (webhook.secret !== undefined) throw new Error(`the webhook "${name}" has two secrets`)
    joined.set(name, { ...webhook, secret })
  }
  return joined
}

function splitNamed(text: string): [name: string, value: string] {
  const at = text.indexOf('=')
  const name = text.slice(0, Math.max(at, 0))
  if (!NAME.test(name)) throw new Error('before "=" there must be a name of 1 to 64 letters, digits, "-" and "_"')
  return [name, text.slice(at + 1)]
}

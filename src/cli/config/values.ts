import { parseWebhook, parseWebhookSecret } from '../../s3/notifications/delivery/webhooks.js'
import { parseQuirks } from '../../services/gateway/quirks.js'
import { checkedText, integer, text } from './kinds.js'

export const port = integer(0, 65_535)
export const host = text('host', 'a host name or address', /^[A-Za-z0-9._:%-]+$/)
export const path = text('path', 'a path', /^[^\0]+$/)
export const regionName = text('name', 'letters, digits and - only', /^[A-Za-z0-9-]{1,64}$/)
export const brandWord = text('word', 'lower-case letters and digits, a letter first', /^[a-z][a-z0-9]{0,30}$/)
// `/` and `,` and `=` separate the parts of an Authorization header: https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-auth-using-authorization-header.html
export const accessKey = text(
  'id',
  '3 to 128 characters of ASCII without space , / =',
  /^(?:(?![,/=])[\x21-\x7e]){3,128}$/,
)
export const secretKey = text('secret', '8 to 128 characters of ASCII without space', /^[\x21-\x7e]{8,128}$/)
export const quirks = checkedText('names', 'none, legacy, or names of quirks joined by commas', parseQuirks)
export const webhook = checkedText('name=url', 'a name, = and an http or https URL', parseWebhook)
export const webhookSecret = checkedText('name=secret', 'the name of a webhook, = and a secret', parseWebhookSecret)
export const mailAddress = text('address', 'a mail address', /^[^\s@<>,;:"()[\]\\]{1,64}@[A-Za-z0-9.-]{1,190}$/)
export const basePath = text('path', 'a path that starts with / and does not end in one', /^(?:\/[^/?#\s,]+)+$/)

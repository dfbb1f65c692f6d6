import { createHmac } from 'node:crypto'

/** A signature of version 2: https://docs.aws.amazon.com/AmazonS3/latest/API/RESTAuthentication.html */
export function signVersion2(secretAccessKey: string, toSign: string): string {
  return createHmac('sha1', secretAccessKey).update(toSign).digest('base64')
}

import { S3Error, xml } from 'dealgate/plugin'
import type { TagPair } from './order.js'

export interface NamedNode {
  readonly name: string
  readonly node: xml.Node
}

/** The one child of a union. Throws InvalidRequest. */
export function only(node: xml.Node, name: string): NamedNode {
  const [first, ...others] = [...node.children]
  const given = first?.[1][0]
  if (!first || !given || others.length > 0 || first[1].length > 1) throw refused(`${name} must hold one element.`)
  return { name: first[0], node: given }
}

/** The tags in `<member>` elements. */
export function tagsOf(set: xml.Node | undefined): TagPair[] {
  return (set?.children.get('member') ?? []).map((tag) => ({
    key: required(tag, 'Key'),
    value: xml.text(tag, 'Value') ?? '',
  }))
}

/** @param name of the element, for the error */
export function bucketOfArn(text: string, name: string): string {
  const bucket = /^arn:[^:]+:s3:::([^/]+)$/.exec(text)?.[1]
  if (bucket === undefined) throw refused(`${name} is not the ARN of a bucket.`)
  return bucket
}

export function objectOfArn(text: string): [bucket: string, key: string] {
  const [, bucket, key] = /^arn:[^:]+:s3:::([^/]+)\/(.+)$/s.exec(text) ?? []
  if (bucket === undefined || key === undefined) throw refused('ObjectArn is not the ARN of an object.')
  return [bucket, key]
}

/** The first child of this name. */
export function childOf(node: xml.Node, name: string): xml.Node | undefined {
  return node.children.get(name)?.[0]
}

/** Throws MalformedXML where there is none. */
export function child(node: xml.Node, name: string): xml.Node {
  const found = childOf(node, name)
  if (!found) throw xml.malformed(`The element ${name} is missing.`)
  return found
}

/** The text of a child. Throws InvalidRequest where it is absent or empty. */
export function required(node: xml.Node, name: string): string {
  const text = xml.text(node, name)
  if (text === undefined || text === '') throw refused(`${name} is missing.`)
  return text
}

/** A whole number from 0. Throws InvalidRequest. */
export function number(text: string, name: string): number {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  const most = name === 'Priority' ? 2_147_483_647 : Number.MAX_SAFE_INTEGER
  if (!(value <= most)) throw refused(`${name} is not a whole number from 0 to ${most}.`)
  return value
}

export function refused(message: string): S3Error {
  return new S3Error('InvalidRequest', { message })
}

export function notOffered(message: string): S3Error {
  return new S3Error('NotImplemented', { message })
}

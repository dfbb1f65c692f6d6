import { BlockList, isIPv4, isIPv6 } from 'node:net'

/**
 * A second reading of the rules, for comparison: slow, on the documents as they are, and with nothing of the product.
 *
 * Sources, all of docs.aws.amazon.com: IAM/latest/UserGuide/reference_policies_evaluation-logic.html,
 * reference_policies_elements_condition_operators.html, reference_policies_variables.html,
 * reference_policies_elements_notprincipal.html; AmazonS3/latest/userguide/acl-overview.html,
 * access-control-block-public-access.html, about-object-ownership.html. Where they leave a case open, the reading that
 * gives less is taken.
 */
export interface SlowQuestion {
  readonly account?: string
  readonly user?: string
  readonly action: string
  readonly resource: string
  readonly context: Readonly<Record<string, readonly string[]>>
}

interface SlowAcl {
  readonly owner: string
  readonly grants: readonly { readonly to: string; readonly permission: string }[]
}

export interface SlowWorld {
  readonly owner: string
  readonly policy?: string
  readonly identityPolicies?: readonly string[]
  readonly sessionPolicy?: string
  readonly bucketAcl?: SlowAcl
  readonly objectAcl?: SlowAcl
  readonly ownership: string
  readonly ignorePublicAcls: boolean
  readonly restrictPublicBuckets: boolean
}

// biome-ignore lint/suspicious/noExplicitAny: the documents are read as they come, without a schema
type Json = any
type Effect = 'Allow' | 'Deny'

export function slowDecide(question: SlowQuestion, world: SlowWorld): 'allow' | 'explicit deny' | 'implicit deny' {
  const action = question.action.toLowerCase()
  const signed = question.account !== undefined
  const bucketPolicy = statementsThatApply(world.policy, question)
  const session = statementsThatApply(world.sessionPolicy, question)
  const identity = (world.identityPolicies ?? []).flatMap((text) => statementsThatApply(text, question))

  // "An explicit deny in any of these policies overrides the allow."
  const isOwnersRoot = question.account === world.owner && question.user === undefined
  const rescue = isOwnersRoot && /^s3:(get|put|delete)bucketpolicy$/.test(action)
  if ([...identity, ...session].some(({ effect }) => effect === 'Deny')) return 'explicit deny'
  if (bucketPolicy.some(({ effect }) => effect === 'Deny') && !rescue) return 'explicit deny'

  // "The resulting session's permissions are the intersection."
  if (world.sessionPolicy !== undefined && !session.some(({ effect }) => effect === 'Allow')) return 'implicit deny'

  // RestrictPublicBuckets: "only AWS service principals and authorized users within the bucket owner's account".
  if (world.restrictPublicBuckets && question.account !== world.owner && slowIsPublic(world.policy))
    return 'implicit deny'

  const mayByIdentity = world.identityPolicies === undefined || identity.some(({ effect }) => effect === 'Allow')
  const aclsCount = world.ownership !== 'BucketOwnerEnforced'
  const aboutObject = question.resource.indexOf('/') >= 0
  const decidedByBucket =
    !action.startsWith('s3:') ||
    /^s3:(putobject|deleteobject|deleteobjectversion|abortmultipartupload|listmultipartuploadparts|restoreobject|putobjectretention|putobjectlegalhold|bypassgovernanceretention|(put|delete)object(version)?tagging)$/.test(
      action,
    )
  const holder = aclsCount && aboutObject && !decidedByBucket && world.objectAcl ? world.objectAcl.owner : world.owner

  if (signed && !mayByIdentity && question.account !== holder) return 'implicit deny'
  if (signed && mayByIdentity && question.account === holder) return 'allow'

  // Ways in, each with whether it is for the account as a whole, which then needs the identity's own policy as well.
  if (holder === world.owner) {
    for (const { effect, named } of bucketPolicy) {
      if (effect === 'Allow' && (named !== 'account' || mayByIdentity)) return 'allow'
    }
  }
  if (aclsCount) {
    const list = /^s3:list(bucket|bucketversions|bucketmultipartuploads)$/
    const [acl, permission] = list.test(action)
      ? [world.bucketAcl, 'READ']
      : action === 's3:putobject' ||
          (action === 's3:deleteobject' && signed && world.objectAcl?.owner === question.account)
        ? [world.bucketAcl, 'WRITE']
        : action === 's3:getbucketacl'
          ? [world.bucketAcl, 'READ_ACP']
          : action === 's3:putbucketacl'
            ? [world.bucketAcl, 'WRITE_ACP']
            : /^s3:getobject(version)?$/.test(action)
              ? [world.objectAcl, 'READ']
              : /^s3:getobject(version)?acl$/.test(action)
                ? [world.objectAcl, 'READ_ACP']
                : /^s3:putobject(version)?acl$/.test(action)
                  ? [world.objectAcl, 'WRITE_ACP']
                  : [undefined, '']
    for (const grant of acl?.grants ?? []) {
      if (grant.permission !== 'FULL_CONTROL' && grant.permission !== permission) continue
      if (grant.to === 'AllUsers' && !world.ignorePublicAcls) return 'allow'
      if (grant.to === 'AuthenticatedUsers' && signed && !world.ignorePublicAcls) return 'allow'
      if (signed && grant.to === question.account && mayByIdentity) return 'allow'
    }
  }
  return 'implicit deny'
}

function statementsThatApply(text: string | undefined, question: SlowQuestion) {
  if (text === undefined) return []
  const policy: Json = JSON.parse(text)
  const found: { effect: Effect; named: string }[] = []
  for (const statement of list(policy.Statement)) {
    const named = principalOf(statement, question)
    const variables = policy.Version === '2012-10-17'
    if (named === '' || !actionFits(statement, question.action) || !resourceFits(statement, question, variables))
      continue
    if (conditionFits(statement, question, variables)) found.push({ effect: statement.Effect, named })
  }
  return found
}

function list(value: Json): Json[] {
  return Array.isArray(value) ? value : [value]
}

/** '' if the statement is not about this principal. */
function principalOf(statement: Json, { account, user }: SlowQuestion): string {
  const element = statement.Principal ?? statement.NotPrincipal
  if (element === undefined) return 'identity'
  const names: string[] = element === '*' ? ['*'] : Object.values(element).flatMap((value) => list(value))
  const byUser = user !== undefined && names.includes(user)
  const byAccount = account !== undefined && (names.includes(account) || names.includes(`arn:aws:iam::${account}:root`))
  if (statement.Principal !== undefined) {
    if (byUser) return 'identity'
    if (names.includes('*')) return 'everyone'
    return byAccount ? 'account' : ''
  }
  if (names.includes('*') || byUser) return ''
  if (byAccount && (statement.Effect === 'Allow' || user === undefined)) return ''
  return 'everyone'
}

function actionFits(statement: Json, asked: string): boolean {
  const action = asked.toLowerCase()
  const core = action.split(':')[0] === 's3'
  if (statement.Action !== undefined) {
    return list(statement.Action).some((word: string) => {
      if (word === '*') return core || statement.Effect === 'Deny'
      return like(plain(word.toLowerCase()), action)
    })
  }
  if (list(statement.NotAction).some((word: string) => like(plain(word.toLowerCase()), action))) return false
  return core || statement.Effect === 'Deny'
}

function resourceFits(statement: Json, question: SlowQuestion, variables: boolean): boolean {
  const patterns = list(statement.Resource ?? statement.NotResource).map((text: string) =>
    items(text, true, variables, question),
  )
  const any = patterns.some((pattern) => pattern !== undefined && like(pattern, question.resource))
  if (statement.Resource !== undefined) return any
  if (statement.Effect === 'Allow' && patterns.some((pattern) => pattern === undefined)) return false
  return !any
}

function conditionFits(statement: Json, question: SlowQuestion, variables: boolean): boolean {
  for (const [operator, keys] of Object.entries<Json>(statement.Condition ?? {})) {
    for (const [key, wanted] of Object.entries<Json>(keys)) {
      const values = question.context[key.toLowerCase()] ?? []
      // "Key names are not case-sensitive": tags that differ in case alone are values of one key, "but only one value
      // matches. This might result in unexpected condition failures." Each of them alone must give what both give.
      const single = key.toLowerCase() !== 's3:requestobjecttagkeys' && !operator.includes(':')
      const asked = single && values.length > 1 ? values.map((value) => [value]) : [values]
      const results = asked.map((some) =>
        one(operator, some, list(wanted).map(String), statement.Effect, question, variables),
      )
      if (statement.Effect === 'Allow' ? results.includes(false) : !results.includes(true)) return false
    }
  }
  return true
}

function one(
  operator: string,
  values: readonly string[],
  wanted: readonly string[],
  effect: Effect,
  question: SlowQuestion,
  variables: boolean,
): boolean {
  if (operator === 'Null') return wanted.some((text) => (text.toLowerCase() === 'true') === (values.length === 0))
  if (operator.endsWith('IfExists')) {
    if (values.length === 0) return true
    return one(operator.slice(0, -'IfExists'.length), values, wanted, effect, question, variables)
  }
  const [prefix, base = ''] = operator.includes(':') ? operator.split(':') : ['', operator]
  const negated = /Not/.test(base)
  const positive = base.replace('Not', '')
  const outcome = (value: string) => {
    const each = wanted.map((text) => compare(positive, value, text, question, variables))
    if (!negated) return each.some((result) => result === 'yes')
    // "For a negated operator, NOR." What cannot be told counts against the caller.
    if (each.some((result) => result === 'yes')) return false
    return effect === 'Deny' || each.every((result) => result === 'no')
  }
  const empty = values.filter((value) => value !== '').length === 0
  // "It also returns true if there are no context keys in the request, or [...] a null dataset, such as an empty
  // string."
  if (prefix === 'ForAllValues') return empty ? true : values.filter((value) => !outcome(value)).length === 0
  // "For no matching context key or if the key does not exist, the condition returns false."
  if (prefix === 'ForAnyValue') return empty ? false : values.filter(outcome).length > 0
  // "If the key [...] is not present [...] the condition is false", and for negated operators true.
  if (values.length === 0) return negated
  return negated ? !values.some((value) => !outcome(value)) : values.some(outcome)
}

function compare(base: string, value: string, text: string, question: SlowQuestion, variables: boolean): string {
  const verdict = (result: boolean) => (result ? 'yes' : 'no')
  if (base.startsWith('Numeric') || base.startsWith('Date')) {
    const read = (raw: string) =>
      base.startsWith('Numeric') ? Number(raw || 'x') : /^\d{5,}$/.test(raw) ? Number(raw) * 1000 : Date.parse(raw)
    const [a, b] = [read(value), read(text)]
    if (Number.isNaN(a)) return 'unknown'
    const sign = Math.sign(a - b)
    const relation = base.replace(/^(Numeric|Date)/, '')
    const signs: Record<string, number[]> = {
      Equals: [0],
      LessThan: [-1],
      LessThanEquals: [-1, 0],
      GreaterThan: [1],
      GreaterThanEquals: [0, 1],
    }
    return verdict((signs[relation] ?? []).includes(sign))
  }
  if (base === 'Bool') return verdict(value.toLowerCase() === text.toLowerCase())
  if (base === 'BinaryEquals')
    return verdict(Buffer.compare(Buffer.from(value, 'base64'), Buffer.from(text, 'base64')) === 0)
  if (base === 'IpAddress') {
    const [network = '', length] = text.split('/')
    const family = isIPv4(network) ? 'ipv4' : 'ipv6'
    const block = new BlockList()
    block.addSubnet(network, Number(length ?? (family === 'ipv4' ? 32 : 128)), family)
    if (!isIPv4(value) && !isIPv6(value)) return 'no'
    return verdict(block.check(value, isIPv4(value) ? 'ipv4' : 'ipv6'))
  }
  if (base.startsWith('Arn')) {
    // "Each of the six colon-delimited components of the ARN is checked separately."
    const cut = (arn: string) => {
      const parts = arn.split(':')
      return parts.length < 6 ? undefined : [...parts.slice(0, 5), parts.slice(5).join(':')]
    }
    const [given, patterns] = [cut(value), cut(text)]
    if (given === undefined || patterns === undefined) return 'unknown'
    const results = patterns.map((part, at) => {
      const pattern = items(part, true, variables, question)
      return pattern === undefined ? undefined : like(pattern, given[at] as string)
    })
    if (results.includes(undefined)) return 'unknown'
    return verdict(!results.includes(false))
  }
  const pattern = items(text, base === 'StringLike', variables, question)
  if (pattern === undefined) return 'unknown'
  if (base === 'StringLike') return verdict(like(pattern, value))
  const literal = pattern.join('')
  if (base === 'StringEqualsIgnoreCase') return verdict(literal.toLowerCase() === value.toLowerCase())
  return verdict(literal === value)
}

const plain = (text: string): string[] => [...text].map((char) => (char === '*' || char === '?' ? `wild${char}` : char))

/**
 * Characters of a text of the policy, `wild*` and `wild?` for its wildcards; undefined without a value of a variable.
 */
function items(text: string, wild: boolean, variables: boolean, question: SlowQuestion): string[] | undefined {
  const result: string[] = []
  for (const piece of variables ? text.split(/(\$\{[^}]*\})/) : [text]) {
    const inner = variables && /^\$\{(.*)\}$/s.exec(piece)?.[1]
    if (typeof inner !== 'string') result.push(...(wild ? plain(piece) : [...piece]))
    else if (inner === '*' || inner === '?' || inner === '$') result.push(inner)
    else {
      const [name = '', ...rest] = inner.split(',')
      const values = question.context[name.trim().toLowerCase()] ?? []
      const fallback = rest.length > 0 ? rest.join(',').trim().slice(1, -1) : undefined
      if (values.length > 1) return undefined
      const value = values.length === 1 ? values[0] : fallback
      if (value === undefined) return undefined
      result.push(...value)
    }
  }
  return result
}

/** By the table of what each beginning of the pattern matches. */
function like(pattern: readonly string[], text: string): boolean {
  const chars = [...text]
  let row = [true, ...chars.map(() => false)]
  for (const item of pattern) {
    const next: boolean[] = []
    for (let at = 0; at <= chars.length; at++) {
      if (item === 'wild*') next[at] = row.slice(0, at + 1).includes(true)
      else next[at] = at > 0 && row[at - 1] === true && (item === 'wild?' || item === chars[at - 1])
    }
    row = next
  }
  return row[chars.length] === true
}

/**
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-control-block-public-access.html, "The meaning of
 * public"
 */
export function slowIsPublic(text: string | undefined): boolean {
  if (text === undefined) return false
  const policy: Json = JSON.parse(text)
  return list(policy.Statement).some((statement) => {
    if (statement.Effect === 'Deny') return false
    const names =
      statement.Principal && statement.Principal !== '*' ? Object.values(statement.Principal).flatMap(list) : ['*']
    if (!names.includes('*')) return false
    for (const [operator, keys] of Object.entries<Json>(statement.Condition ?? {})) {
      for (const [name, wanted] of Object.entries<Json>(keys)) {
        const key = name.toLowerCase()
        const base = operator.replace('ForAnyValue:', '')
        const values: string[] = list(wanted).map(String)
        if (key === 'aws:sourceip' && base === 'IpAddress') {
          const broad = (cidr: string) => {
            const [network = '', length = '128'] = cidr.split('/')
            return cidr.includes('/') && Number(length) < (isIPv4(network) ? 8 : 32)
          }
          if (!values.some(broad)) return false
        }
        const positive = ['StringEquals', 'StringEqualsIgnoreCase', 'StringLike', 'ArnEquals', 'ArnLike'].includes(base)
        const wild = base === 'StringLike' || base.startsWith('Arn')
        const variables = policy.Version === '2012-10-17'
        const isFixed = (value: string) =>
          !(variables ? value.replace(/\$\{[*?$]\}/g, '') : value).match(
            wild ? (variables ? /[*?]|\$\{/ : /[*?]/) : variables ? /\$\{/ : /[^\s\S]/,
          )
        if (
          positive &&
          ['aws:principalarn', 'aws:principalaccount', 'aws:userid'].includes(key) &&
          values.every(isFixed)
        )
          return false
      }
    }
    return true
  })
}

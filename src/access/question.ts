/** Name of a service in policies: `{"Service": "logging.s3.amazonaws.com"}`. */
export type ServiceName = 'logging.s3.amazonaws.com'

/** The caller of a request. Every key pair of a gateway account belongs to that account. */
export type Principal =
  | { readonly kind: 'anonymous' }
  /** A part of this server that writes for a bucket, such as the delivery of access logs. */
  | { readonly kind: 'service'; readonly name: ServiceName }
  | {
      readonly kind: 'account'
      /** Canonical id of the account: 64 hexadecimal digits in lower case. */
      readonly account: string
      /** `arn:aws:iam::ACCOUNT:user/NAME` of the identity, where ACCOUNT is the canonical id. */
      readonly arn?: string
      /** The identity stands for its whole account. Absent: it does unless it has an ARN. */
      readonly root?: boolean
    }

/** The values of a request that conditions and policy variables can name. Lazy: a policy asks for few of them. */
export interface Conditions {
  /** The values of a key in lower case, such as `aws:sourceip`; undefined if the request does not have the key. */
  get(key: string): readonly string[] | undefined
}

/** One request, as a policy sees it. */
export interface Question {
  readonly principal: Principal
  /** Such as `s3:GetObject` or `deal:CreateObjectDeal`. */
  readonly action: string
  /** `arn:aws:s3:::bucket`, `arn:aws:s3:::bucket/key`, or `arn:aws:s3:::` for actions on no bucket. */
  readonly resource: string
  readonly conditions: Conditions
  /** The resource is an object that the same request writes: no ACL of an earlier one counts. */
  readonly ofNew?: boolean | undefined
}

/** The answer of one document. */
export interface Verdict {
  readonly effect: 'allow' | 'deny' | 'none'
  /** For the log, never for the client. */
  readonly reason: string
  /**
   * To whom an allowance is given: an identity by name, everybody, or an account, which gives it on to its identities
   * by their own policies.
   */
  readonly to?: 'identity' | 'everyone' | 'account'
}

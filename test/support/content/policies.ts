/** A bucket policy by which everyone lists a bucket and reads its objects. */
export function publicRead(bucket: string): string {
  const everyone = { Effect: 'Allow', Principal: '*' }
  const Statement = [
    { ...everyone, Action: 's3:ListBucket', Resource: `arn:aws:s3:::${bucket}` },
    { ...everyone, Action: 's3:GetObject', Resource: `arn:aws:s3:::${bucket}/*` },
  ]
  return JSON.stringify({ Version: '2012-10-17', Statement })
}

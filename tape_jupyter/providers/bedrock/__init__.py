"""Amazon Bedrock's runtime API."""

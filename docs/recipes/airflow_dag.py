"""Records through Redrive every five minutes, one run at a time."""

from datetime import datetime, timedelta, timezone

from airflow import DAG
from airflow.operators.bash import BashOperator

with DAG(
    dag_id="redrive_records",
    schedule="*/5 * * * *",
    start_date=datetime(2027, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
) as dag:
    BashOperator(
        task_id="drain",
        cwd="/srv/records",
        bash_command="npx redrive drain --input incoming.ndjson --output results.ndjson",
        # Redrive retries the records; the next run comes in five minutes anyway.
        retries=0,
        execution_timeout=timedelta(hours=1),
    )

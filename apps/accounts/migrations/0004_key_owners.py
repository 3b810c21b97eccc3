"""Keys belong to a member or to a service account."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

# Whoever made a key owns it, where they are still a member whose role may have its scopes. Every other key goes to a
# service account: `command-line` where the trail says that the command line made it, else `imported-keys`.
OWNERS = """
UPDATE accounts_apikey k SET owner_user_id = k.created_by_id
FROM accounts_membership m JOIN accounts_user u ON u.id = m.user_id
WHERE m.project_id = k.project_id AND m.user_id = k.created_by_id AND u.is_active
AND (m.role = 'owner' OR (m.role = 'researcher' AND NOT 'admin' = ANY(k.scopes)));

CREATE TEMPORARY TABLE ownerless ON COMMIT DROP AS
SELECT k.id, k.project_id, k.created_by_id,
    CASE WHEN k.created_by_id IS NULL AND EXISTS (
        SELECT FROM accounts_auditevent a
        WHERE a.project_id = k.project_id AND a.verb = 'key.created' AND a.target = k.prefix AND a.actor = 'command line')
    THEN 'command-line' ELSE 'imported-keys' END AS account
FROM accounts_apikey k WHERE k.owner_user_id IS NULL;

INSERT INTO accounts_serviceaccount (project_id, name, is_active, created_at)
SELECT DISTINCT project_id, account, true, now() FROM ownerless;

UPDATE accounts_apikey k SET owner_service_account_id = s.id, note = CASE
    WHEN o.account = 'command-line' THEN 'made by the command line'
    WHEN o.created_by_id IS NULL THEN 'its maker is not known any more'
    ELSE left('made by ' || coalesce((SELECT email FROM accounts_user WHERE id = o.created_by_id), '')
        || ', who may not have such a key now', 200) END
FROM ownerless o JOIN accounts_serviceaccount s ON s.project_id = o.project_id AND s.name = o.account
WHERE o.id = k.id;
DROP TABLE ownerless;
"""
# What the columns refer to is checked at once, so that the table can be altered in the same transaction.
CHECK_NOW = "SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED"


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0003_annotators_see_models'),
    ]

    operations = [
        migrations.CreateModel(
            name='ServiceAccount',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.SlugField(max_length=60)),
                ('is_active', models.BooleanField(default=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='service_accounts', to='accounts.project')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('project', 'name'), name='service_account_once')],
            },
        ),
        migrations.AlterField(
            model_name='apikey',
            name='created_by',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='apikey',
            name='owner_user',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='api_keys', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='apikey',
            name='owner_service_account',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='api_keys', to='accounts.serviceaccount'),
        ),
        migrations.AddField(
            model_name='apikey',
            name='note',
            field=models.CharField(blank=True, default='', max_length=200),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name='apikey',
            name='requests_per_minute',
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='apikey',
            name='tokens_per_minute',
            field=models.PositiveBigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='apikey',
            name='tokens_per_day',
            field=models.PositiveBigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='apikey',
            name='allowed_networks',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=50), default=list, size=None),
        ),
        migrations.RunSQL(OWNERS, migrations.RunSQL.noop),
        migrations.RunSQL(CHECK_NOW, migrations.RunSQL.noop),
        migrations.AddConstraint(
            model_name='apikey',
            constraint=models.CheckConstraint(condition=models.Q(('owner_user', None), ('owner_service_account', None), _connector='XOR'), name='apikey_one_owner'),
        ),
    ]
